// SPDX-License-Identifier: Apache-2.0
#include "policy/methods/presets.h"

namespace winnow::policy::methods {

/// Keeps everything. No options, no budget.
Preset full() {
  return {.name = "full",
          .summary = "keeps every entry",
          .paper = "the plain transformer cache",
          .options = {},
          .build = [](const Options&) { return Method{}; }};
}

}  // namespace winnow::policy::methods
