// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace winnow::test {

/// How a copy of a GGUF file differs from it. What is left empty stays.
struct GgufChanges {
  std::string arch = {};  ///< another architecture, in the names of its keys too
  /// Pieces of tensors' names, such as "attn_norm", and what stands in their place.
  std::vector<std::pair<std::string, std::string>> names = {};
  /// Pieces of the names of vectors, and how many of their values stay.
  std::vector<std::pair<std::string, std::int64_t>> lengths = {};
  /// Called for every f32 tensor with the name that it has in the file that is copied.
  std::function<void(const std::string& tensor, std::span<float> values)> edit = {};
};

/// Throws std::runtime_error where a file cannot be read or written, or an architecture's key is an array.
void copy_gguf(const std::string& from, const std::string& to, const GgufChanges& changes);

}  // namespace winnow::test
