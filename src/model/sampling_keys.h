// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "model/model_file.h"
#include "winnow/sampling.h"

namespace winnow::model {

/// How a file wants its model sampled.
struct SamplingKeys {
  SamplingChoice choice;
  std::vector<std::string> wrong;   ///< a sentence for each value that cannot be, and is not part of the choice
  std::vector<std::string> unused;  ///< keys that say something which winnow does not do
};

/// Reads `general.sampling.*`. Nothing there makes a model unusable, so nothing is thrown.
SamplingKeys sampling_keys(const ModelFile& file);

}  // namespace winnow::model
