// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace winnow {

/// Rotary position embedding, whatever scaling a model uses, in its one common form: at position p the pair i of a head
/// is rotated by the angle p * frequency[i] and stretched by `magnitude` (1 unless YaRN).
struct Rope {
  /// Which two elements of a head form pair i.
  enum class Pairing : std::uint8_t {
    adjacent,  ///< (2i, 2i + 1): GGUF's `llama`
    halves,    ///< (i, i + n/2): GGUF's `qwen2`, `qwen3`, `gemma` (NEOX)
  };

  Pairing pairing = Pairing::adjacent;
  std::vector<float> frequency;  ///< [n_rot / 2] radians per position; elements from n_rot on are not rotated
  float magnitude = 1.0F;

  bool operator==(const Rope&) const = default;

  int rotated_dims() const { return 2 * static_cast<int>(frequency.size()); }

  /// The elements of a head that form pair i, up to d / 2. Those that are not rotated pair with their neighbours.
  std::pair<std::size_t, std::size_t> pair(std::size_t i) const {
    if (pairing == Pairing::halves && i < frequency.size()) return {i, i + frequency.size()};
    return {2 * i, 2 * i + 1};
  }
  /// Lengths of the pairs of a head [d], [d / 2]; no rotation changes them.
  void pair_lengths(std::span<const float> head, std::span<float> out) const;

  /// Turns a head that is rotated to position p so that it is rotated to p + shift, in place.
  /// All moves between key frames are this one operation: un-rotating is a shift by -p, a document's offset a shift by
  /// it.
  void shift(float* head, std::int64_t positions) const;

  /// Cosines and then sines of all pairs at a position, [2][pairs]: for many heads that turn alike.
  void angles(std::int64_t position, float* out) const;
  /// Turns a head by such angles.
  void rotate(float* head, const float* angles) const;
};

}  // namespace winnow
