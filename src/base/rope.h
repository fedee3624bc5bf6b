// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
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
