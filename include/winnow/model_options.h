// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace winnow {

/// Overrides for values of a model file.
struct ModelOptions {
  float rope_freq_base = 0;  ///< 0: from the file
  /// `none`, `linear:FACTOR`, `yarn:FACTOR[:TRAINED_CONTEXT]`; `longrope:short` or `longrope:long` for a file with
  /// factors for short and long texts (default: long if its context is longer than the trained one). Empty: from the
  /// file.
  std::string rope_scaling;
  /// Source of a Jinja chat template; empty: the file's.
  std::string chat_template = {};
};

}  // namespace winnow
