// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/rotation.h"
#include "cache/element.h"

namespace winnow::attention::cpu {

/// Keys of a decode item. Constant, so that results do not depend on the number of threads.
inline constexpr int kStretchKeys = 256;
/// Keys processed together: their rows stay in the L1 cache while all heads of the group read them.
inline constexpr int kTogether = 32;

/// Floats of a decoded quantized row: whole blocks of 32.
constexpr int decoded_width(int dim) { return (dim + 31) / 32 * 32; }

/// Floats of a query split into the x and the y of its rotated pairs, `width` each, and the rest.
constexpr int split_width(int dim, int pairs, int width) { return dim - 2 * pairs + 2 * width; }

/// Query heads of a group over at most kStretchKeys entries: rows, merged entries of rows, or rows followed by their
/// merged entries.
struct Stretch {
  const float* q = nullptr;  ///< [heads][d], scaled; with a cap, so that logits are in its units
  float cap = 0;             ///< soft cap of logits; 0: none
  int heads = 0;
  cache::Rows keys;
  cache::Rows values;
  int own = 0;  ///< entries that are rows: all rows, or none
  /// Effective positions to which the rows' keys are rotated first. Null: keys are already rotated.
  const std::int32_t* rotate_to = nullptr;
  const RotationTable* table = nullptr;  ///< REQUIRES: set, and reserved for all effective positions
  int merged_entries = 0;  ///< merged entries of the rows; their keys are those of their rows, times a scale
  const std::int32_t* centres = nullptr;  ///< row of each, ascending, plus first_centre
  std::int32_t first_centre = 0;
  const float* scales = nullptr;
  /// Effective positions of merged entries. REQUIRES: set if there are any, and rotate_to, too, if there are rows.
  const std::int32_t* merged_rotate_to = nullptr;
  float* logits = nullptr;          ///< work space [heads][kStretchKeys], 64-byte aligned
  float* weights = nullptr;         ///< likewise, for merged entries
  float* rows = nullptr;            ///< work space [kTogether][decoded_width(d)]
  float* split = nullptr;           ///< work space [heads][split_width()], for rotated keys
  float* capture = nullptr;         ///< destination of exp(q·k - m) of rows, [heads][capture_stride], or null
  float* merged_capture = nullptr;  ///< the same for merged entries
  int capture_stride = 0;
  float* o = nullptr;  ///< [heads][d] weighted sum of values
  float* m = nullptr;  ///< [heads] largest logit
  float* d = nullptr;  ///< [heads] sum of exponentials

  int entries() const { return own + merged_entries; }
};

void run_stretch(const Stretch& stretch);

}  // namespace winnow::attention::cpu
