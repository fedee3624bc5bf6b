// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace winnow {

/// Rotary position embedding in a form common to all scalings: at position p, pair i of a head is rotated by the angle
/// p * frequency[i] and scaled by `magnitude` (1 except for YaRN).
struct Rope {
  /// The two elements of a head that form pair i.
  enum class Pairing : std::uint8_t {
    adjacent,  ///< (2i, 2i + 1): GGUF's `llama`
    halves,    ///< (i, i + n/2): GGUF's `qwen2`, `qwen3`, `gemma` (NEOX)
  };

  Pairing pairing = Pairing::adjacent;
  std::vector<float> frequency;  ///< [n_rot / 2] radians per position; elements from n_rot on are not rotated
  float magnitude = 1.0F;

  bool operator==(const Rope&) const = default;

  int rotated_dims() const { return 2 * static_cast<int>(frequency.size()); }

  /// Elements of pair i of a head, i < d / 2. Elements that are not rotated pair with their neighbours.
  std::pair<std::size_t, std::size_t> pair(std::size_t i) const {
    if (pairing == Pairing::halves && i < frequency.size()) return {i, i + frequency.size()};
    return {2 * i, 2 * i + 1};
  }
  /// Norms of the pairs of a head [d], [d / 2]; rotation does not change them.
  void pair_lengths(std::span<const float> head, std::span<float> out) const;

  /// Moves a head rotated to position p to position p + shift, in place. All changes of position use it: un-rotating is
  /// a shift by -p, and a document is moved by its offset.
  void shift(float* head, std::int64_t positions) const;

  /// Cosines, then sines, of all pairs at a position, [2][pairs]: for many heads with the same rotation.
  void angles(std::int64_t position, float* out) const;
  /// Rotates a head by such angles.
  void rotate(float* head, const float* angles) const;
};

}  // namespace winnow
