// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/pooling.h"
#include "server/openai/fields.h"
#include "winnow/model.h"

namespace winnow::server {

/// Format of the numbers in an answer.
enum class NumberFormat : std::uint8_t {
  json,
  base64,  ///< of little-endian floats
};

/// A request for embeddings.
struct EmbeddingRequest {
  std::vector<std::vector<Token>> texts;
  std::optional<model::Pooling> pooling;  ///< none: the model's own
  std::size_t dimensions = 0;             ///< number of leading elements of each vector to return
  NumberFormat format = NumberFormat::json;

  std::size_t tokens() const;
};

/// The most texts of a request.
inline constexpr std::size_t kMostEmbedded = 2048;

/// Reads the fields. A text may have at most `context` tokens. Throws ApiError.
EmbeddingRequest read_embedding_request(Fields& fields, const Model& model, int context);

}  // namespace winnow::server
