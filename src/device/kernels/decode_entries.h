// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "device/kernels.h"
#include "device/kernels/primitives.h"

namespace winnow::device {

inline constexpr int kDecodeWarps = 4;

/// Entries that are the item's rows.
class RowEntries {
 public:
  WINNOW_DEVICE RowEntries(const DecodeItem& item, unsigned char* /*shared*/) : last_(item.count - 1) {}
  WINNOW_DEVICE void fetch() const {}
  WINNOW_DEVICE int row(int entry) const { return entry < last_ ? entry : last_; }
  WINNOW_DEVICE float factor(int /*entry*/) const { return 1; }

 private:
  int last_;
};

/// Entries with positions, rows and factors, in shared memory.
class ListedEntries {
 public:
  WINNOW_DEVICE ListedEntries(const DecodeItem& item, unsigned char* shared)
      : item_(item),
        last_(item.count - 1),
        positions_(reinterpret_cast<std::int32_t*>(shared)),
        rows_(positions_ + DecodeItem::kMost),
        factors_(reinterpret_cast<float*>(rows_ + DecodeItem::kMost)) {}

  /// REQUIRES: called by all threads.
  WINNOW_DEVICE void fetch() const {
    for (int entry = thread(); entry <= last_; entry += kDecodeWarps * 32) {
      positions_[entry] = item_.positions != nullptr ? item_.positions[entry] : 0;
      rows_[entry] = item_.rows != nullptr ? item_.rows[entry] - item_.first_row : entry;
      factors_[entry] = item_.factors != nullptr ? item_.factors[entry] : 1;
    }
    sync_block();
  }
  WINNOW_DEVICE int row(int entry) const { return rows_[existing(entry)]; }
  WINNOW_DEVICE int position(int entry) const { return positions_[existing(entry)]; }
  WINNOW_DEVICE float factor(int entry) const { return factors_[entry]; }

 private:
  WINNOW_DEVICE int existing(int entry) const { return entry < last_ ? entry : last_; }

  const DecodeItem& item_;
  int last_;
  std::int32_t* positions_;
  std::int32_t* rows_;
  float* factors_;
};

}  // namespace winnow::device
