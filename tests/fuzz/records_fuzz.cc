// SPDX-License-Identifier: Apache-2.0
// Any bytes as records of an evaluation: refused with an InputError, or reported as tables.
#include <cstdlib>

#include "eval/record_file.h"
#include "eval/report/text.h"
#include "eval/summary.h"
#include "fuzz/memory_file.h"
#include "winnow/error.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  const winnow::test::MemoryFile file({data, size});
  try {
    const auto summaries = winnow::eval::summarize(winnow::eval::read_records(file.path()));
    if (winnow::eval::to_csv(summaries).empty()) std::abort();
    winnow::eval::to_markdown(summaries);
  } catch (const winnow::InputError&) {
  }
  return 0;
}
