// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/memory.h"
#include "base/rope.h"

namespace winnow::attention::cpu {

/// Cosines and sines of the angles that add up to those of one position: of a multiple of AngleRows::kFine and of the
/// rest. Both are [RotationTable::width()] cosines, then as many sines.
struct Angles {
  const float* coarse;
  const float* fine;
};

/// Where a table's angles lie: a copy of one's own is quicker in a loop that stores.
struct AngleRows {
  static constexpr std::int32_t kFine = 64;

  const float* coarse;
  const float* fine;
  std::ptrdiff_t stride;  ///< floats from one row to the next

  Angles at(std::int32_t position) const {
    const auto p = static_cast<std::uint32_t>(position);
    return {coarse + static_cast<std::ptrdiff_t>(p / kFine) * stride,
            fine + static_cast<std::ptrdiff_t>(p % kFine) * stride};
  }
};

/// Cosines and sines of all positions below a bound that grows: rows that are rotated when they are read are too many
/// for computing them. A table with a row for each position would not stay in a cache, and reading it would take longer
/// than everything else about a row.
class RotationTable {
 public:
  static constexpr std::int32_t kFine = AngleRows::kFine;

  RotationTable(MemoryAccount& account, const Rope& rope) : account_(&account), rope_(&rope) {}

  /// Makes sure of positions [0, end). Throws MemoryError.
  void reserve(std::int32_t end);

  /// Bytes that reserve() has in use at its peak.
  static std::size_t bytes(const Rope& rope, std::int32_t end);

  const Rope& rope() const { return *rope_; }
  int pairs() const { return static_cast<int>(rope_->frequency.size()); }
  /// Whole vectors of every target that have room for the pairs; what is after the last pair is 0.
  int width() const { return width_of(*rope_); }
  Rope::Pairing pairing() const { return rope_->pairing; }
  AngleRows rows() const { return {coarse_.as<float>().data(), fine_.as<float>().data(), std::ptrdiff_t{2} * width()}; }

 private:
  static constexpr int kVector = 16;

  static int width_of(const Rope& rope) {
    return (static_cast<int>(rope.frequency.size()) + kVector - 1) / kVector * kVector;
  }
  /// Multiples of kFine that are kept: more than are needed now.
  static std::int32_t coarse_rows(std::int32_t end) { return end / kFine + end / (2 * kFine) + 1; }

  /// Angles of `count` multiples of a step, from 0 on.
  Buffer multiples(std::int32_t step, std::int32_t count) const;

  MemoryAccount* account_;
  const Rope* rope_;
  Buffer coarse_;
  Buffer fine_;
  std::int32_t end_ = 0;
};

}  // namespace winnow::attention::cpu
