// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/memory.h"
#include "base/rope.h"

namespace winnow::attention {

/// Cosines and sines for one position as the sum of two angles: that of a multiple of AngleRows::kFine, and the rest.
/// Each is [RotationTable::width()] cosines, then as many sines.
struct Angles {
  const float* coarse;
  const float* fine;
};

/// Addresses of a table's angles. A local copy is faster in a loop that stores.
struct AngleRows {
  static constexpr std::int32_t kFine = 64;

  const float* coarse;
  const float* fine;
  std::ptrdiff_t stride;  ///< floats between rows

  Angles at(std::int32_t position) const {
    const auto p = static_cast<std::uint32_t>(position);
    return {coarse + static_cast<std::ptrdiff_t>(p / kFine) * stride,
            fine + static_cast<std::ptrdiff_t>(p % kFine) * stride};
  }
};

/// Cosines and sines of all positions below a growing bound, since computing them for each row that is read would be
/// too slow. A table with a row for each position would not fit into a cache, and reading it would dominate the cost of
/// a row.
class RotationTable {
 public:
  static constexpr std::int32_t kFine = AngleRows::kFine;

  RotationTable(MemoryAccount& account, const Rope& rope) : account_(&account), rope_(&rope) {}

  /// Ensures that positions [0, end) are there. Throws MemoryError.
  void reserve(std::int32_t end);

  /// Peak bytes of reserve().
  static std::size_t bytes(const Rope& rope, std::int32_t end);

  /// All positions below it are there.
  std::int32_t end() const { return end_; }
  const Rope& rope() const { return *rope_; }
  int pairs() const { return static_cast<int>(rope_->frequency.size()); }
  /// Number of pairs, padded with 0 to whole vectors of every target.
  int width() const { return width_of(*rope_); }
  Rope::Pairing pairing() const { return rope_->pairing; }
  /// Angles of the multiples of kFine below end(), and of the positions below kFine: [2][width] each.
  std::span<const float> coarse() const { return coarse_.as<float>(); }
  std::span<const float> fine() const { return fine_.as<float>(); }
  AngleRows rows() const { return {coarse_.as<float>().data(), fine_.as<float>().data(), std::ptrdiff_t{2} * width()}; }

 private:
  static constexpr int kVector = 16;

  static int width_of(const Rope& rope) {
    return (static_cast<int>(rope.frequency.size()) + kVector - 1) / kVector * kVector;
  }
  /// Number of multiples of kFine, with room for growth.
  static std::int32_t coarse_rows(std::int32_t end) { return end / kFine + end / (2 * kFine) + 1; }

  /// Angles of the first `count` multiples of a step, from 0 on.
  Buffer multiples(std::int32_t step, std::int32_t count) const;

  MemoryAccount* account_;
  const Rope* rope_;
  Buffer coarse_;
  Buffer fine_;
  std::int32_t end_ = 0;
};

}  // namespace winnow::attention
