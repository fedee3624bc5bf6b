// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "model/model_file.h"
#include "winnow/sampling.h"

namespace winnow::model {

/// Sampling defaults in a model file.
struct SamplingKeys {
  SamplingChoice choice;
  std::vector<std::string> wrong;   ///< messages about invalid values, which are ignored
  std::vector<std::string> unused;  ///< keys of options that winnow does not have
};

/// Reads `general.sampling.*`. Does not throw: none of these keys makes a model unusable.
SamplingKeys sampling_keys(const ModelFile& file);

}  // namespace winnow::model
