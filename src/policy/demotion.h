// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "base/rope.h"
#include "policy/merging.h"

namespace winnow::policy {

/// A centre that loses its own vectors while decoding: it is merged into the centre that is most alike or, where none
/// is alike enough, evicted with its merged entries.
class Demotion {
 public:
  /// What an entry is worth: by slot, then by merged entry.
  using Worth = std::function<double(int entry)>;

  Demotion(const Merging& how, const StepView& view, int head, Worth worth)
      : how_(how), view_(view), head_(head), worth_(std::move(worth)) {}

  /// REQUIRES: the entry at `slot` is not always kept.
  void demote(int slot) const;

 private:
  struct Entry;
  const Rope& rope() const;
  float magnitude() const;
  /// The centre that is most alike, and how alike; slot -1: there is no other. Where none is alike enough to be merged
  /// into, it may be any.
  struct Target {
    int slot = -1;
    double likeness = 0;
  };
  Target most_alike(int slot) const;
  /// 0 for rows whose values' cosines, `by_value`, are too small for a merge.
  std::vector<float> cosines_of_keys(const Entry& entry, int slot, const std::vector<cache::LanePiece>& pieces,
                                     std::span<const float> by_value) const;
  /// Sum of the worth of a class.
  double class_worth(int slot) const;
  /// Returns the length of the demoted key in units of the other's.
  float merge_vectors(int slot, int into) const;

  const Merging& how_;
  const StepView& view_;
  int head_;
  Worth worth_;
};

}  // namespace winnow::policy
