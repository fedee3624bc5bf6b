// SPDX-License-Identifier: Apache-2.0
// Any bytes as the file of answers that `run --jsonl -o` continues: the file is refused and left unchanged, or at most
// an incomplete last line is removed.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "cli/jsonl/answers.h"
#include "fuzz/memory_file.h"
#include "winnow/error.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  const std::string before(data, size);
  const winnow::test::MemoryFile file(before);
  const winnow::test::MemoryFile prompts("{}");
  bool refused = false;
  try {
    winnow::cli::JsonlAnswers(file.path(), winnow::TextInput(prompts.path())).take_known("0123456789abcdef");
  } catch (const winnow::InputError&) {
    refused = true;
  }
  const std::string after = file.bytes();
  if (refused && after != before) std::abort();
  const std::string whole = before.substr(0, before.rfind('\n') + 1);
  if (after.substr(0, whole.size()) != whole) std::abort();
  return 0;
}
