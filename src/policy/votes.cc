// SPDX-License-Identifier: Apache-2.0
#include "policy/votes.h"

#include <algorithm>
#include <utility>

#include "base/as_size.h"
#include "policy/pieces.h"

namespace winnow::policy {

namespace {

/// Heads of the layers so far that have selected each entry, [n].
CountedVector<float> counted(const LayerView& view, std::span<const std::vector<std::int32_t>> selected) {
  CountedVector<float> out(view.carried.begin(), view.carried.end());
  out.resize(as_size(view.tokens()));
  for (const auto& of_head : selected) {
    for (const auto j : of_head) out[as_size(j)] += 1;
  }
  return out;
}

/// Scores by votes first, then by the head's own score, whose ranks are fractions of a vote; of equals the later is
/// better.
std::vector<double> voted(const LayerView& view, std::span<const double> own) {
  std::vector<std::int32_t> order(own.size());
  for (std::size_t j = 0; j < own.size(); ++j) order[j] = static_cast<std::int32_t>(j);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int32_t a, std::int32_t b) { return own[as_size(a)] < own[as_size(b)]; });
  std::vector<double> out(view.carried.begin(), view.carried.end());
  out.resize(own.size());
  for (std::size_t rank = 0; rank < order.size(); ++rank)
    out[as_size(order[rank])] += static_cast<double>(rank) / static_cast<double>(order.size());
  return out;
}

/// Adds the entries of the best pieces to those that are selected, until there are `count`.
void fill(std::vector<std::int32_t>& selected, const std::vector<Piece>& pieces, int count, int tokens) {
  std::vector<bool> has(as_size(tokens));
  for (const auto j : selected) has[as_size(j)] = true;
  for (const Piece& piece : pieces) {
    for (const auto j : piece.entries) {
      if (selected.size() == as_size(count)) break;
      if (!has[as_size(j)]) selected.push_back(j);
    }
  }
  std::sort(selected.begin(), selected.end());
}

}  // namespace

void add_votes(SelectionParts& selection, double share) {
  const DividePart divide = selection.pieces ? selection.pieces->divide : single_entries();
  selection.carry = {"how many heads have selected each entry",
                     [](const LayerView& view, const Scores&, std::span<const std::vector<std::int32_t>> selected) {
                       return counted(view, selected);
                     }};
  selection.draw = {
      "the entries that the layers before have selected most often",
      [divide](const LayerView& view, const Scores& scores, std::vector<std::vector<std::int32_t>>& selected,
               std::span<const int> counts, const AlwaysKept& always_kept) {
        for (int head = 0; head < scores.heads(); ++head) {
          const auto rank = voted(view, sum_over_heads(scores, head, head + 1));
          fill(selected[as_size(head)], divide.call(view, rank, always_kept), counts[as_size(head)], view.tokens());
        }
      }};
  selection.drawn_share = share;
}

}  // namespace winnow::policy
