#pragma once

#include <cstdint>

#include "base/memory.h"
#include "base/rope.h"

namespace winnow::attention::cpu {

/// Cosines and sines of all positions below a bound that grows: rows that are turned when they are read are too many for computing them.
class TurnTable {
 public:
  TurnTable(MemoryAccount& account, const Rope& rope) : account_(&account), rope_(&rope) {}

  /// Makes sure of positions [0, end). Throws MemoryError.
  void reserve(std::int32_t end);

  int pairs() const { return static_cast<int>(rope_->frequency.size()); }
  Rope::Pairing pairing() const { return rope_->pairing; }
  /// [pairs] cosines, then as many sines.
  const float* at(std::int32_t position) const { return values_.as<float>().data() + static_cast<std::ptrdiff_t>(position) * 2 * pairs(); }

 private:
  MemoryAccount* account_;
  const Rope* rope_;
  Buffer values_;
  std::int32_t end_ = 0;
};

}  // namespace winnow::attention::cpu
