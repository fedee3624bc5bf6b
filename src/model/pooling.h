// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "model/model_file.h"

namespace winnow::model {

/// Reduction of a text's last hidden states to one vector.
enum class Pooling : std::uint8_t { mean, last };

/// The file's pooling, by default the mean. Throws ModelError for one that a causal network cannot have.
Pooling read_pooling(const ModelFile& file);

}  // namespace winnow::model
