// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "base/rope.h"
#include "policy/merging.h"

namespace winnow::policy {

/// Demotes a centre while decoding: it is merged into the most similar centre or, if none is similar enough, evicted
/// with its merged entries.
class Demotion {
 public:
  /// Worth of an entry, by slot, then by merged entry.
  using Worth = std::function<double(int entry)>;

  Demotion(const Merging& how, const StepView& view, int head, Worth worth)
      : how_(how), view_(view), head_(head), worth_(std::move(worth)) {}

  /// REQUIRES: the entry at `slot` is not always kept.
  void demote(int slot) const;

 private:
  struct Entry;
  const Rope& rope() const;
  float magnitude() const;
  /// The most similar centre and its similarity; slot -1 if there is no other one. May be any centre if none is similar
  /// enough for a merge.
  struct Target {
    int slot = -1;
    double likeness = 0;
  };
  Target most_alike(int slot) const;
  /// Cosines of keys, by slot; 0 for rows whose `by_value`, the cosine of values, is too small for a merge.
  std::vector<float> cosines_of_keys(const Entry& entry, int slot, const std::vector<cache::LaneRun>& runs,
                                     std::span<const float> by_value) const;
  /// Total worth of a class.
  double class_worth(int slot) const;
  /// Returns the length of the demoted key divided by that of the other key.
  float merge_vectors(int slot, int into) const;

  const Merging& how_;
  const StepView& view_;
  int head_;
  Worth worth_;
};

}  // namespace winnow::policy
