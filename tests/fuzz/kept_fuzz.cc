// SPDX-License-Identifier: Apache-2.0
// Any bytes as a file of kept positions: refused with an InputError, or plotted.
#include <algorithm>
#include <cstdlib>

#include "cli/kept/picture.h"
#include "fuzz/memory_file.h"
#include "winnow/error.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  const winnow::test::MemoryFile file({data, size});
  try {
    const auto kept = winnow::cli::read_kept(file.path());
    if (winnow::cli::picture(kept, {}).empty()) std::abort();
    for (const auto& layer : kept.layers) {
      for (const auto& head : layer) {
        for (const double density : winnow::cli::densities(head, kept.n_prompt, std::min(80, kept.n_prompt))) {
          if (!(density >= 0 && density <= 1)) std::abort();
        }
      }
    }
  } catch (const winnow::InputError&) {
  }
  return 0;
}
