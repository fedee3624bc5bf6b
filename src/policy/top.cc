// SPDX-License-Identifier: Apache-2.0
#include "policy/top.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "base/as_size.h"

namespace winnow::policy {

namespace {

/// An evictable entry, ordered from the best to the worst: by score, then position, then head.
struct Candidate {
  float score;
  std::int32_t position;
  std::int32_t head;

  bool operator<(const Candidate& other) const {
    if (std::isnan(score) != std::isnan(other.score)) return std::isnan(other.score);
    if (score != other.score && !std::isnan(score)) return score > other.score;
    return position != other.position ? position > other.position : head < other.head;
  }
};

/// Maps scores to integers of the same order: NaN first, both zeros equal.
std::int32_t rank_of(float score) {
  if (std::isnan(score)) return std::numeric_limits<std::int32_t>::min();
  const auto bits = std::bit_cast<std::int32_t>(score + 0.0F);
  return bits >= 0 ? bits : bits ^ std::numeric_limits<std::int32_t>::max();
}

/// The evictable entries of all heads.
CountedVector<Candidate> evictable_of(const Scores& scores, const AlwaysKept& always_kept) {
  const int evictable = std::max(0, scores.size() - always_kept.total());
  CountedVector<Candidate> out(as_size(scores.heads()) * as_size(evictable));
  auto next = out.begin();
  for (int head = 0; head < scores.heads(); ++head) {
    for (int j = always_kept.sinks; j < always_kept.sinks + evictable; ++j) *next++ = {scores.head(head)[j], j, head};
  }
  return out;
}

void cut_to_best(CountedVector<Candidate>& candidates, int count) {
  const auto most = as_size(std::max(0, count));
  if (most >= candidates.size()) return;
  std::nth_element(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(most), candidates.end());
  candidates.erase(candidates.begin() + static_cast<std::ptrdiff_t>(most), candidates.end());
}

}  // namespace

std::vector<std::int32_t> top(std::span<const float> scores, int count, const AlwaysKept& always_kept) {
  const int evictable = static_cast<int>(scores.size()) - always_kept.sinks - always_kept.recent;
  const int most = std::min(count, evictable);
  if (most <= 0) return {};
  std::vector<std::int32_t> ranks(evictable);
  std::transform(scores.begin() + always_kept.sinks, scores.end() - always_kept.recent, ranks.begin(), rank_of);
  auto cut = ranks;
  std::nth_element(cut.begin(), cut.begin() + (most - 1), cut.end(), std::greater());
  const std::int32_t least = cut[most - 1];
  // More entries than needed may tie at the lowest selected rank; the first of them are dropped.
  auto surplus = std::count_if(ranks.begin(), ranks.end(), [least](std::int32_t rank) { return rank >= least; }) - most;
  std::vector<std::int32_t> out;
  out.reserve(most);
  for (int i = 0; i < evictable; ++i) {
    const std::int32_t rank = ranks[i];
    if (rank > least || (rank == least && surplus-- <= 0)) out.push_back(always_kept.sinks + i);
  }
  return out;
}

std::vector<int> top_of_layer(const Scores& scores, int count, const AlwaysKept& always_kept) {
  auto candidates = evictable_of(scores, always_kept);
  cut_to_best(candidates, count);
  std::vector<int> out(scores.heads());
  for (const auto& c : candidates) ++out[c.head];
  return out;
}

std::size_t top_of_layer_bytes(std::size_t entries) { return entries * sizeof(Candidate); }

std::vector<std::int32_t> with_always_kept(std::span<const std::int32_t> selected, int n,
                                           const AlwaysKept& always_kept) {
  std::vector<std::int32_t> out(always_kept.sinks);
  std::iota(out.begin(), out.end(), 0);
  out.insert(out.end(), selected.begin(), selected.end());
  for (int j = n - always_kept.recent; j < n; ++j) out.push_back(j);
  return out;
}

}  // namespace winnow::policy
