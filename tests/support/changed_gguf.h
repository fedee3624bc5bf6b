// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace winnow::test {

/// Changes to make in a copy of a GGUF file. An empty member changes nothing.
struct GgufChanges {
  std::string arch = {};  ///< another architecture, also as the prefix of its keys
  /// Pieces of tensors' names, such as "attn_norm", and their replacements.
  std::vector<std::pair<std::string, std::string>> names = {};
  /// Pieces of the names of vectors, and the number of values to keep.
  std::vector<std::pair<std::string, std::int64_t>> lengths = {};
  /// Called for every f32 tensor, with its name in the original file.
  std::function<void(const std::string& tensor, std::span<float> values)> edit = {};
};

/// Throws std::runtime_error if a file cannot be read or written, or if a key of the architecture is an array.
void copy_gguf(const std::string& from, const std::string& to, const GgufChanges& changes);

}  // namespace winnow::test
