// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace winnow {

/// What a user may override of a model's file.
struct ModelOptions {
  float rope_freq_base = 0;  ///< 0: the file's
  std::string rope_scaling;  ///< empty: the file's; `none` or `linear:FACTOR`
};

}  // namespace winnow
