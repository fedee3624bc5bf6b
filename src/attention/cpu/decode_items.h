// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "attention/attention.h"
#include "attention/cpu/stretch.h"

namespace winnow::attention::cpu {

/// A part of a read that makes one stretch: rows, merged entries of rows, or rows and merged entries of theirs.
struct DecodeItem {
  DecodeRead rows;  ///< whose keys and values are read
  int first = 0;    ///< entry within that read
  int own = 0;      ///< entries that are rows
  DecodeRead merged = {};
  int first_merged = 0;  ///< entry within that read
  int merged_entries = 0;

  /// Whether somebody wants its probabilities.
  bool captures() const { return rows.probabilities != nullptr || merged.probabilities != nullptr; }
  /// Multiplies the probabilities of query head `g` of the group, where they are wanted.
  void scale_probabilities(int g, float factor) const;
  /// Fills what a stretch says of keys, values and entries, and where their probabilities go.
  void describe(Stretch& stretch) const;
};

/// Adds what one query row reads of one KV head, cut into items. Rows are read together with their merged entries where
/// both are there.
void add_items(std::span<const DecodeRead> reads, std::vector<DecodeItem>& items);

}  // namespace winnow::attention::cpu
