// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace winnow {

/// Values of a model's file that a user may override.
struct ModelOptions {
  float rope_freq_base = 0;  ///< 0: the file's
  /// Empty: the file's. `none`, `linear:FACTOR`, `yarn:FACTOR[:TRAINED_CONTEXT]`; `longrope:short` or `longrope:long`
  /// for a file with factors for texts of both lengths (long by default where its context is longer than the trained
  /// one).
  std::string rope_scaling;
  /// The source of a chat template in Jinja; empty: the file's.
  std::string chat_template = {};
};

}  // namespace winnow
