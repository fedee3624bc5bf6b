#include "policy/select.h"

#include <algorithm>
#include <cmath>
#include <numeric>

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

void add_evictable(std::span<const float> scores, int head, const Forced& forced, std::vector<Candidate>& out) {
  const int end = static_cast<int>(scores.size()) - forced.recent;
  for (int j = forced.sinks; j < end; ++j) out.push_back({scores[static_cast<std::size_t>(j)], j, head});
}

void cut_to_best(std::vector<Candidate>& candidates, int count) {
  const auto most = static_cast<std::size_t>(std::max(0, count));
  if (most >= candidates.size()) return;
  std::nth_element(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(most), candidates.end());
  candidates.resize(most);
}

}  // namespace

std::vector<std::int32_t> top(std::span<const float> scores, int count, const Forced& forced) {
  std::vector<Candidate> candidates;
  candidates.reserve(scores.size());
  add_evictable(scores, 0, forced, candidates);
  cut_to_best(candidates, count);
  std::vector<bool> selected(scores.size());
  for (const auto& c : candidates) selected[static_cast<std::size_t>(c.position)] = true;
  std::vector<std::int32_t> out;
  out.reserve(candidates.size());
  for (std::size_t j = 0; j < selected.size(); ++j) {
    if (selected[j]) out.push_back(static_cast<std::int32_t>(j));
  }
  return out;
}

std::vector<int> top_of_layer(const Scores& scores, int count, const Forced& forced) {
  std::vector<Candidate> candidates;
  candidates.reserve(static_cast<std::size_t>(scores.heads()) * static_cast<std::size_t>(scores.size()));
  for (int head = 0; head < scores.heads(); ++head) add_evictable(scores.head(head), head, forced, candidates);
  cut_to_best(candidates, count);
  std::vector<int> out(static_cast<std::size_t>(scores.heads()));
  for (const auto& c : candidates) ++out[static_cast<std::size_t>(c.head)];
  return out;
}

std::vector<std::int32_t> with_forced(std::span<const std::int32_t> selected, int n, const Forced& forced) {
  std::vector<std::int32_t> out(static_cast<std::size_t>(forced.sinks));
  std::iota(out.begin(), out.end(), 0);
  out.insert(out.end(), selected.begin(), selected.end());
  for (int j = n - forced.recent; j < n; ++j) out.push_back(j);
  return out;
}

}  // namespace winnow::policy
