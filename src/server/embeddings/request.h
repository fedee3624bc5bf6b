// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/pooling.h"
#include "server/openai/fields.h"
#include "winnow/model.h"

namespace winnow::server {

/// How numbers stand in an answer.
enum class NumberFormat : std::uint8_t {
  json,
  base64,  ///< of little-endian floats
};

/// A request for embeddings.
struct EmbeddingRequest {
  std::vector<std::vector<Token>> texts;
  model::Pooling pooling = model::Pooling::mean;
  std::size_t dimensions = 0;  ///< the first ones of each vector
  NumberFormat format = NumberFormat::json;

  std::size_t tokens() const;
};

/// Texts of a request at most.
inline constexpr std::size_t kMostEmbedded = 2048;

/// Reads the fields, `context` tokens of a text at most. Throws ApiError.
EmbeddingRequest read_embedding_request(Fields& fields, const Model& model, int context);

}  // namespace winnow::server
