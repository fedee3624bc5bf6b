// SPDX-License-Identifier: Apache-2.0
// Any bytes as the prompts of `run --jsonl`: each line is a prompt, or is refused with a message that names the line's
// number.
#include <cstdlib>

#include "cli/jsonl/prompts.h"
#include "fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  const winnow::test::MemoryFile file({data, size});
  winnow::cli::JsonlPrompts prompts(file.path(), {});
  for (int before = -1;;) {
    try {
      const auto prompt = prompts.next();
      if (!prompt) return 0;
      if (prompt->prompt.text.empty() && prompt->prompt.question.empty()) std::abort();
    } catch (const winnow::cli::BadLine&) {
    }
    if (prompts.lines() <= before) std::abort();
    before = prompts.lines();
  }
}
