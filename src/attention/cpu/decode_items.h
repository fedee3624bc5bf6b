// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "attention/attention.h"
#include "attention/cpu/stretch.h"

namespace winnow::attention::cpu {

/// A part of a read that is one stretch: rows, merged entries of rows, or rows and their merged entries.
struct DecodeItem {
  DecodeRead rows;  ///< the read of keys and values
  int first = 0;    ///< index of an entry in that read
  int own = 0;      ///< entries that are rows
  DecodeRead merged = {};
  int first_merged = 0;  ///< index of an entry in that read
  int merged_entries = 0;

  /// True if its probabilities are captured.
  bool captures() const { return rows.probabilities != nullptr || merged.probabilities != nullptr; }
  /// Multiplies the captured probabilities of query head `g` of the group.
  void scale_probabilities(int g, float factor) const;
  /// Sets a stretch's keys, values, entries and destinations of probabilities.
  void describe(Stretch& stretch) const;
};

/// Splits the reads of one query row in one KV head into items. Rows are read together with their merged entries if
/// both are there.
void add_items(std::span<const DecodeRead> reads, std::vector<DecodeItem>& items);

}  // namespace winnow::attention::cpu
