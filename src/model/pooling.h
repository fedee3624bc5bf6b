// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "model/model_file.h"

namespace winnow::model {

/// How the last hidden states of a text become one vector.
enum class Pooling : std::uint8_t { mean, last };

/// The file's own, or the mean where it has none. Throws ModelError for one that a causal network cannot have.
Pooling read_pooling(const ModelFile& file);

}  // namespace winnow::model
