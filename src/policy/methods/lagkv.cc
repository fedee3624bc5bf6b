// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "base/as_size.h"
#include "policy/methods/presets.h"

namespace winnow::policy::methods {

namespace {

struct LagKvSettings {
  int lag;       ///< entries of a partition, at most
  int sinks;     ///< before the first partition
  bool by_rank;  ///< scores are ranks within the partition
};

/// At least half of the budget after the sinks is free: the always kept tail is shorter than two partitions.
int lag_of(const LagKvSettings& s, int budget) { return std::clamp((budget - s.sinks) / 4, 1, s.lag); }

/// The last whole partition, which has no successor to compare with, and the entries after it.
AlwaysKept kept_of(const LagKvSettings& s, int tokens, int budget) {
  const int sinks = std::min(s.sinks, tokens);
  const int lag = lag_of(s, budget);
  return {sinks, std::min(tokens - sinks, lag + (tokens - sinks) % lag)};
}

/// Rows [first, first + count) of a head, [count][d].
std::vector<float> decoded(const cache::Rows& rows, int first, int count) {
  const auto dim = as_size(rows.dim);
  std::vector<float> out(as_size(count) * dim);
  for (int i = 0; i < count; ++i)
    cache::decode_row(rows.type, rows.row(first + i), std::span(out).subspan(as_size(i) * dim, dim));
  return out;
}

/// Least and largest value of each channel in a partition.
struct Bounds {
  Bounds(const std::vector<float>& rows, std::size_t dim)
      : least(dim, std::numeric_limits<float>::infinity()), most(dim, -std::numeric_limits<float>::infinity()) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      least[i % dim] = std::min(least[i % dim], rows[i]);
      most[i % dim] = std::max(most[i % dim], rows[i]);
    }
  }
  std::vector<float> least;
  std::vector<float> most;
};

/// Standard deviation over the channels of a row, each scaled by the bounds; a channel whose bounds are equal counts as
/// 0.
double deviation(std::span<const float> row, const Bounds& bounds) {
  double sum = 0;
  double squares = 0;
  for (std::size_t c = 0; c < row.size(); ++c) {
    const double extent = static_cast<double>(bounds.most[c]) - bounds.least[c];
    const double x = extent > 0 ? (static_cast<double>(row[c]) - bounds.least[c]) / extent : 0;
    sum += x;
    squares += x * x;
  }
  const auto n = static_cast<double>(row.size());
  return std::sqrt(std::max(0.0, squares - sum * sum / n) / std::max(1.0, n - 1));
}

/// Adds half of the softmax, over each partition, of its rows' deviations.
void add_part(const cache::Rows& rows, int first, int lag, std::span<double> scores) {
  const auto dim = as_size(rows.dim);
  auto own = decoded(rows, first, lag);
  for (auto out = scores; !out.empty(); out = out.subspan(as_size(lag))) {
    first += lag;
    auto next = decoded(rows, first, lag);
    const Bounds bounds(next, dim);
    std::vector<double> weights;
    for (int i = 0; i < lag; ++i)
      weights.push_back(std::exp(deviation(std::span(own).subspan(as_size(i) * dim, dim), bounds)));
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (std::size_t i = 0; i < weights.size(); ++i) out[i] += weights[i] / sum / 2;
    own = std::move(next);
  }
}

/// Replaces the scores of each partition by their ranks from 0 on, divided by its length; of equal scores the later one
/// ranks higher.
void rank(std::span<double> scores, int lag) {
  std::vector<int> order(as_size(lag));
  for (; !scores.empty(); scores = scores.subspan(as_size(lag))) {
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return scores[a] < scores[b]; });
    for (int i = 0; i < lag; ++i) scores[order[as_size(i)]] = static_cast<double>(i) / lag;
  }
}

Scores unlike_the_next(const LayerView& view, const AlwaysKept& always_kept, const LagKvSettings& s) {
  const int lag = lag_of(s, view.budget);
  Scores out(view.shape.kv_heads, view.tokens());
  if (view.tokens() <= always_kept.total()) return out;
  std::vector<double> scores(as_size(view.tokens() - always_kept.total()));
  for (int head = 0; head < out.heads(); ++head) {
    std::fill(scores.begin(), scores.end(), 0.0);
    add_part(view.scratch.keys(head), always_kept.sinks, lag, scores);
    add_part(view.scratch.values(head), always_kept.sinks, lag, scores);
    if (s.by_rank) rank(scores, lag);
    std::copy(scores.begin(), scores.end(), out.head(head).begin() + always_kept.sinks);
  }
  return out;
}

}  // namespace

/// LagKV (Liang et al., 2025, "LagKV: Lag-Relative Information of the KV Cache Tells Which Tokens Are Important",
/// section 3): channels are scaled by the range of the next partition's tokens; entries whose channels then vary most
/// get the highest scores. Uses no queries.
///   lag    tokens of a partition; winnow limits it to a quarter of the budget after the sinks
///   sinks  first tokens that are always kept
///   rank   partition: each partition keeps the same number, as in the paper; prompt: entries are ranked together
Preset lagkv() {
  return {
      .name = "lagkv",
      .summary = "keeps the entries that vary most over the channels, relative to the next tokens' keys and values",
      .paper = "Liang et al. 2025, LagKV: Lag-Relative Information of the KV Cache Tells Which Tokens Are Important",
      .options = {{"lag", Option::Integer{128, 2, 65536}, "tokens of a partition, at most a quarter of the budget"},
                  {"sinks", Option::Integer{4, 0, 65536}, "first tokens that are always kept"},
                  {"rank", Option::Choice{"partition", {"partition", "prompt"}},
                   "whether scores are ranked within each partition or compared directly"}},
      .build = [](const Options& options) {
        const LagKvSettings s{options.integer("lag"), options.integer("sinks"), options.text("rank") == "partition"};
        Method method;
        method.selection.always_kept = {
            fmt::format("the first {} tokens and the last partition", s.sinks),
            [s](const LayerPrompt& prompt, int budget) { return kept_of(s, prompt.tokens, budget); }};
        method.selection.least = {"the first tokens and the last one",
                                  [s](const LayerPrompt& prompt) { return std::min(s.sinks + 1, prompt.tokens); }};
        method.selection.score = {"deviation over the channels, scaled by the next partition's bounds",
                                  [s](const LayerView& view, const AlwaysKept& always_kept) {
                                    return unlike_the_next(view, always_kept, s);
                                  }};
        method.schedule = Schedule::once;
        return method;
      }};
}

}  // namespace winnow::policy::methods
