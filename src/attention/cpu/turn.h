#pragma once

#include <cstdint>

#include "base/memory.h"
#include "base/rope.h"

namespace winnow::attention::cpu {

/// Cosines and sines of the angles that add up to those of one position: of a multiple of TurnTable::kFine and of the rest. Both are
/// [TurnTable::width()] cosines, then as many sines.
struct Angles {
  const float* coarse;
  const float* fine;
};

/// Cosines and sines of all positions below a bound that grows: rows that are turned when they are read are too many for computing them.
/// A table with a row for each position would not stay in a cache, and reading it would take longer than everything else about a row.
class TurnTable {
 public:
  static constexpr std::int32_t kFine = 64;

  TurnTable(MemoryAccount& account, const Rope& rope) : account_(&account), rope_(&rope) {}

  /// Makes sure of positions [0, end). Throws MemoryError.
  void reserve(std::int32_t end);

  int pairs() const { return static_cast<int>(rope_->frequency.size()); }
  /// Whole vectors of every target that have room for the pairs; what is behind the last pair is 0.
  int width() const { return (pairs() + kVector - 1) / kVector * kVector; }
  Rope::Pairing pairing() const { return rope_->pairing; }
  Angles at(std::int32_t position) const { return {row(coarse_, position / kFine), row(fine_, position % kFine)}; }

 private:
  static constexpr int kVector = 16;

  const float* row(const Buffer& rows, std::int32_t index) const {
    return rows.as<float>().data() + static_cast<std::ptrdiff_t>(index) * 2 * width();
  }
  /// Angles of `count` multiples of a step, from 0 on.
  Buffer multiples(std::int32_t step, std::int32_t count) const;

  MemoryAccount* account_;
  const Rope* rope_;
  Buffer coarse_;
  Buffer fine_;
  std::int32_t end_ = 0;
};

}  // namespace winnow::attention::cpu
