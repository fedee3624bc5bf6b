// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "base/as_size.h"
#include "policy/methods/presets.h"
#include "policy/ordered_lane.h"
#include "policy/redundancy.h"
#include "policy/rows.h"
#include "policy/step.h"
#include "winnow/error.h"
#include "winnow/policy/score.h"

namespace winnow::policy::methods {

namespace {

struct RKvSettings {
  double lambda;  ///< weight of attention; redundancy has 1 - lambda
  Pooling pooling;
  int window;  ///< last queries that are observed
  int buffer;
};

/// Turns `attention` of the evictable entries into scores. `redundancy` covers all entries; the evictable ones come
/// first.
void mix(const RKvSettings& s, std::span<const double> redundancy, std::span<float> attention) {
  const double received = std::accumulate(attention.begin(), attention.end(), 0.0);
  for (float& a : attention) a = received > 0 ? static_cast<float>(a / received) : 0;
  pool(attention, s.pooling);
  double sum = 0;
  for (const double r : redundancy) sum += std::exp(r);
  for (std::size_t i = 0; i < attention.size(); ++i) {
    const double softened = std::exp(redundancy[i]) / sum;
    attention[i] = static_cast<float>(s.lambda * attention[i] - (1 - s.lambda) * softened);
  }
}

/// Removes RoPE's magnitude from keys if it scales only some dimensions and so distorts lengths and angles.
void remove_magnitude(const Rope& rope, int head_dim, std::span<float> keys) {
  const float magnitude = uneven_magnitude(rope, head_dim);
  if (magnitude == 1) return;
  for (std::size_t at = 0; at < keys.size(); at += as_size(head_dim))
    stretch(rope, 1 / magnitude, keys.subspan(at, as_size(head_dim)));
}

Scores of_prompt(const LayerView& view, const AlwaysKept& always_kept, const RKvSettings& s,
                 const attention::ColumnStatistics& attention) {
  Scores scores = reduce_group(attention, view.shape, Reduce::mean);
  const int dim = view.shape.head_dim;
  for (int head = 0; head < scores.heads(); ++head) {
    const auto keys = view.scratch.keys(head);
    const auto redundant = redundancy(view.tokens(), dim, [&](int first, int count, std::span<float> out) {
      for_each_row(keys.slice(first, count), [&](int i, std::span<const float> key) {
        std::ranges::copy(key, out.begin() + static_cast<std::ptrdiff_t>(i) * dim);
      });
      remove_magnitude(view.rope, dim, out);
    });
    mix(s, redundant, scores.head(head).first(as_size(view.tokens() - always_kept.recent)));
  }
  return scores;
}

void evict(const StepView& view, int head, const RKvSettings& s) {
  const OrderedLane lane(view.lanes, head, view.rope);
  const int dim = view.shape.head_dim;
  const auto redundant = redundancy(lane.size(), dim, [&](int first, int count, std::span<float> out) {
    for (int i = 0; i < count; ++i) lane.key(first + i, out.subspan(as_size(i) * as_size(dim), as_size(dim)));
    remove_magnitude(view.rope, dim, out);
  });
  std::vector<float> scores;
  for (int i = 0; i < lane.size() && evictable(view, lane.position(i)); ++i)
    scores.push_back(view.lanes.state(head, 0, lane.slot(i)));
  mix(s, redundant, scores);
  std::vector<float> worth(as_size(lane.size()));
  for (std::size_t i = 0; i < scores.size(); ++i) worth[lane.slot(static_cast<int>(i))] = scores[i];
  evict_least(view, head, worth);
  view.lanes.for_each_span(head, [](const cache::LaneSpan& stretch) { std::ranges::fill(stretch.column(0), 0.0F); });
}

/// Records attention of the last queries before a lane is full.
void follow(const StepView& view, const RKvSettings& s) {
  std::vector<float> attention;
  for (int head = view.first_head; head < view.end_head; ++head) {
    if (!is_full(view, head, s.buffer - s.window + 1)) continue;
    group_mean(view, head, attention);
    add_to_column(view, head, 0, attention);
    if (is_full(view, head, s.buffer)) evict(view, head, s);
  }
}

Method build_r_kv(const Options& options) {
  const RKvSettings s{options.number("lambda"),
                      {Pool::max, odd_kernel(options), Pad::valid},
                      options.integer("window"),
                      options.integer("buffer")};
  if (s.buffer < s.window)
    throw UsageError(
        fmt::format("buffer={} must be at least window={}, the number of queries that are observed before an eviction",
                    s.buffer, s.window));
  Method method;
  const auto attention = method.observers.add(observe_last(s.window), {.ranking = true});
  method.selection.always_kept = {"the window", [s](const LayerPrompt&, int budget) {
                                    return AlwaysKept{0, std::min(s.window, budget)};
                                  }};
  method.selection.least = {"the window", [s](const LayerPrompt&) { return s.window; }};
  method.selection.score = {"max-pooled attention of the window, minus the key's redundancy",
                            [s, attention](const LayerView& view, const AlwaysKept& always_kept) {
                              return of_prompt(view, always_kept, s, view[attention]);
                            }};
  method.selection.score_bytes = [](const LayerPrompt& prompt) { return redundancy_bytes(prompt.tokens); };
  method.selection.signed_scores = true;
  method.schedule = Schedule::once;
  if (options.text("when") == "prefill") return method;
  method.schedule = Schedule::step;
  method.lanes.columns = {"attention of the window"};
  method.decoding.buffer = s.buffer;
  method.decoding.step = {"the entries with the lowest attention and the highest redundancy",
                          [s](const StepView& view) { follow(view, s); }};
  return method;
}

}  // namespace

/// R-KV (Cai et al., 2025, "R-KV: Redundancy-aware KV Cache Compression for Reasoning Models", section 3): attention of
/// the last queries measures importance, and similarity of keys measures redundancy.
///   lambda  weight of attention; redundancy has 1 - lambda
///   window  last queries that are observed, and last entries that are always kept
///   kernel  length of the max pooling of attention
///   buffer  tokens after which a lane is brought back to its budget while decoding, no fewer than the window
///   when    step: evicts while decoding, too; prefill: only when the prompt has been read
Preset r_kv() {
  return {.name = "r-kv",
          .summary = "keeps the entries that the last queries attend to most, unless later keys are similar",
          .paper = "Cai et al. 2025, R-KV: Redundancy-aware KV Cache Compression for Reasoning Models",
          .options = {{"lambda", Option::Number{0.07, 0, 1}, "weight of attention; redundancy has 1 minus this"},
                      {"window", Option::Integer{8, 1, 65536},
                       "last queries that are observed, and last entries that are always kept"},
                      {"kernel", Option::Integer{7, 1, 1025}, "odd length of the max pooling of attention"},
                      buffer_option(),
                      {"when", Option::Choice{"step", {"step", "prefill"}}, "when entries are evicted"}},
          .build = build_r_kv};
}

}  // namespace winnow::policy::methods
