// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "device/kernels.h"
#include "device/kernels/primitives.h"

namespace winnow::device {

/// Rotation to one position; backwards if it is negative. REQUIRES: the position's magnitude is within the table.
class Turn {
 public:
  WINNOW_DEVICE Turn(const Angles& angles, int position)
      : coarse_(angles.coarse + row(magnitude(position) / Angles::kFine, angles)),
        fine_(angles.fine + row(magnitude(position) % Angles::kFine, angles)),
        width_(angles.width),
        sign_(position < 0 ? -1.0F : 1.0F) {}

  /// Rotates pairs [first, first + 4), with elements x[k] and y[k]. REQUIRES: first is a multiple of 4.
  WINNOW_DEVICE void turn(int first, float (&x)[4], float (&y)[4]) const {
    const Floats c = load_floats(coarse_ + first);
    const Floats s = load_floats(coarse_ + width_ + first);
    const Floats fine_c = load_floats(fine_ + first);
    const Floats fine_s = load_floats(fine_ + width_ + first);
    WINNOW_UNROLL
    for (int k = 0; k < 4; ++k) {
      const float cosine = c.x[k] * fine_c.x[k] - s.x[k] * fine_s.x[k];
      const float sine = (c.x[k] * fine_s.x[k] + s.x[k] * fine_c.x[k]) * sign_;
      const float turned = x[k] * cosine - y[k] * sine;
      y[k] = x[k] * sine + y[k] * cosine;
      x[k] = turned;
    }
  }

 private:
  WINNOW_DEVICE static int magnitude(int position) { return position < 0 ? -position : position; }
  WINNOW_DEVICE static std::size_t row(int number, const Angles& angles) {
    return static_cast<std::size_t>(number) * 2 * angles.width;
  }

  const float* coarse_;
  const float* fine_;
  int width_;
  float sign_;
};

/// Rotates an octet of adjacent pairs that begins with element `at`, unless it is beyond the rotated elements.
WINNOW_DEVICE void turn_adjacent(const Turn& turn, const Angles& angles, int at, float (&x)[8]) {
  if (at >= 2 * angles.pairs) return;
  float first[4];
  float second[4];
  WINNOW_UNROLL
  for (int k = 0; k < 4; ++k) {
    first[k] = x[2 * k];
    second[k] = x[2 * k + 1];
  }
  turn.turn(at / 2, first, second);
  WINNOW_UNROLL
  for (int k = 0; k < 4; ++k) {
    x[2 * k] = first[k];
    x[2 * k + 1] = second[k];
  }
}

/// Rotates octets x and y, whose elements are pairs from pair `first` on.
WINNOW_DEVICE void turn_halves(const Turn& turn, int first, float (&x)[8], float (&y)[8]) {
  WINNOW_UNROLL
  for (int half = 0; half < 8; half += 4) {
    float a[4];
    float b[4];
    WINNOW_UNROLL
    for (int k = 0; k < 4; ++k) {
      a[k] = x[half + k];
      b[k] = y[half + k];
    }
    turn.turn(first + half, a, b);
    WINNOW_UNROLL
    for (int k = 0; k < 4; ++k) {
      x[half + k] = a[k];
      y[half + k] = b[k];
    }
  }
}

/// Null, or the reason why rows cannot be rotated with these angles.
inline const char* problem_of(const Angles& angles, std::int32_t dim) {
  if (angles.fine == nullptr) return nullptr;
  if (angles.pairs % 8 != 0 || angles.width % 4 != 0 || angles.width < angles.pairs || 2 * angles.pairs > dim)
    return "elements of a head that are rotated must be a multiple of 16 up to the head's size";
  return nullptr;
}

}  // namespace winnow::device
