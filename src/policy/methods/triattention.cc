// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "base/as_size.h"
#include "policy/calibrations/query_statistics.h"
#include "policy/mean_rotation.h"
#include "policy/methods/presets.h"
#include "policy/ordered_lane.h"
#include "policy/rows.h"
#include "policy/step.h"
#include "winnow/policy/score.h"

namespace winnow::policy::methods {

namespace {

/// Always kept entries.
struct Ends {
  int sinks;
  int recent;
  bool prompt;  ///< keep the whole prompt if it takes half of the budget or less

  AlwaysKept of(int tokens, int budget) const {
    const bool stays = prompt && tokens <= budget / 2;
    const int first = stays ? tokens : std::min({sinks, tokens, budget});
    return {first, std::min(recent, (budget - first) / 2)};
  }
};

/// Positions of future queries after position `now`: 1, 2, 4 … tokens later.
std::vector<std::int64_t> positions_to_come(std::int64_t now, int future) {
  std::vector<std::int64_t> out;
  for (std::int64_t ahead = 1; ahead <= future; ahead *= 2) out.push_back(now + ahead);
  return out;
}

/// Expected score of a key for a query head's future queries: the product of their mean with the key, plus the product
/// of lengths for their deviation from the mean.
class ExpectedQuery {
 public:
  ExpectedQuery(const QueryStatistics& statistics, const Rope& rope, const MeanRotation& rotation)
      : rope_(rope), lengths_(statistics.mean_lengths.size()) {
    rope.pair_lengths(statistics.mean, lengths_);
    for (std::size_t i = 0; i < lengths_.size(); ++i) spread_.push_back(statistics.mean_lengths[i] - lengths_[i]);
    std::vector<double> rotated(statistics.mean.begin(), statistics.mean.end());
    rotation.apply(rotated.data(), 1);
    rotated_mean_.assign(rotated.begin(), rotated.end());
  }

  /// `key` is rotated.
  double score(std::span<const float> key) {
    rope_.pair_lengths(key, lengths_);
    float sum = 0;
    for (std::size_t i = 0; i < key.size(); ++i) sum += rotated_mean_[i] * key[i];
    for (std::size_t i = 0; i < lengths_.size(); ++i) sum += spread_[i] * lengths_[i];
    return sum;
  }

 private:
  const Rope& rope_;
  std::vector<float> rotated_mean_;  ///< [d]
  std::vector<float> spread_;        ///< [d / 2]
  std::vector<float> lengths_;       ///< [d / 2] of the last key
};

/// Distribution of a query head's scores.
struct Distribution {
  double count = 0;
  double sum = 0;
  double squares = 0;

  void add(double x) {
    count += 1;
    sum += x;
    squares += x * x;
  }
  double standard(double x) const {
    constexpr double kLeast = 1e-6;  // makes the scores 0 if all are equal
    const double mean = sum / count;
    return (x - mean) / std::max(kLeast, std::sqrt(std::max(0.0, squares / count - mean * mean)));
  }
};

/// Calls its argument with the index of each evictable entry, and its rotated key.
using ForEachKey = std::function<void(const std::function<void(int, std::span<const float>)>&)>;

/// Combines the standardised scores of a KV head's query heads. Entries that may not be evicted have 0. Scores are
/// computed twice, so that only the result is held in memory.
void score(std::vector<ExpectedQuery>& group, const ForEachKey& for_each_key, Reduce reduce, std::span<float> out) {
  std::vector<Distribution> distributions(group.size());
  for_each_key([&](int, std::span<const float> key) {
    for (std::size_t g = 0; g < group.size(); ++g) distributions[g].add(group[g].score(key));
  });
  for_each_key([&](int i, std::span<const float> key) {
    double most = -std::numeric_limits<double>::infinity();
    double sum = 0;
    for (std::size_t g = 0; g < group.size(); ++g) {
      const double x = distributions[g].standard(group[g].score(key));
      most = std::isnan(x) ? x : std::max(most, x);
      sum += x;
    }
    out[i] = static_cast<float>(reduce == Reduce::max ? most : sum / static_cast<double>(group.size()));
  });
}

/// `view` is a LayerView or a StepView.
template <class View>
std::vector<ExpectedQuery> queries_to_come(const View& view, int head, std::int64_t now, int future) {
  const MeanRotation rotation(view.rope, positions_to_come(now, future));
  std::vector<ExpectedQuery> out;
  for (int g = 0; g < view.shape.group(); ++g) {
    const int query_head = head * view.shape.group() + g;
    out.emplace_back(query_statistics_of(view.calibration, view.shape, query_head), view.rope, rotation);
  }
  return out;
}

Scores of_prompt(const LayerView& view, const AlwaysKept& always_kept, int future, Reduce reduce) {
  Scores scores(view.shape.kv_heads, view.tokens());
  const int end = view.tokens() - always_kept.recent;
  for (int head = 0; head < scores.heads(); ++head) {
    auto group = queries_to_come(view, head, view.scratch.positions().back(), future);
    const auto keys = view.scratch.keys(head).slice(always_kept.sinks, std::max(0, end - always_kept.sinks));
    score(
        group, [&](const auto& each) { for_each_row(keys, each); }, reduce,
        scores.head(head).subspan(as_size(always_kept.sinks)));
  }
  return scores;
}

void evict_now_and_then(const StepView& view, int buffer, int future, Reduce reduce) {
  for (int head = view.first_head; head < view.end_head; ++head) {
    if (!is_full(view, head, buffer)) continue;
    const OrderedLane lane(view.lanes, head, view.rope);
    auto group = queries_to_come(view, head, lane.effective(lane.size() - 1), future);
    std::vector<float> worth(as_size(lane.size()));
    std::vector<float> key(as_size(view.shape.head_dim));
    const auto for_each_key = [&](const auto& each) {
      for (int i = 0; i < lane.size(); ++i) {
        if (!evictable(view, lane.position(i))) continue;
        lane.key(i, key);
        each(lane.slot(i), std::span<const float>(key));
      }
    };
    score(group, for_each_key, reduce, worth);
    evict_least(view, head, worth);
  }
}

Method build_triattention(const Options& options) {
  const Ends ends{options.integer("sinks"), options.integer("recent"), options.text("prompt") == "stay"};
  const int future = options.integer("future");
  const int buffer = options.integer("buffer");
  const Reduce reduce = reduce_from(options.text("gqa"));
  Method method;
  rank_by(method, "product of the key and the future queries that the calibration predicts", ends.sinks,
          [=](const LayerView& view, const AlwaysKept& always_kept) {
            return of_prompt(view, always_kept, future, reduce);
          });
  method.selection.always_kept = {
      ends.prompt ? "the prompt if it takes at most half of the budget; first and recent tokens"
                  : "first and recent tokens",
      [ends](const LayerPrompt& prompt, int budget) { return ends.of(prompt.tokens, budget); }};
  method.selection.signed_scores = true;
  method.calibration = query_statistics();
  if (options.text("when") == "prefill") return method;
  method.schedule = Schedule::step;
  method.decoding.buffer = buffer;
  method.decoding.step = {"the entries with the lowest scores",
                          [=](const StepView& view) { evict_now_and_then(view, buffer, future, reduce); }};
  method.decoding.step_sees_attention = false;
  return method;
}

}  // namespace

/// TriAttention (Mao et al., 2026, "TriAttention: Efficient Long Reasoning with Trigonometric KV Compression"): before
/// RoPE, a query head's queries cluster around a centre. So the distance and length of a key predict the attention of
/// later queries. The centres are in the session's calibration.
///   sinks   first tokens that are always kept
///   recent  last tokens that are always kept, at most half of the budget after the sinks
///   prompt  stay: a prompt that takes at most half of the budget is always kept; evict: it is ranked like the rest
///   future  greatest distance of the future queries over which scores are averaged: 1, 2, 4 … tokens ahead
///   gqa     how scores are combined over the query heads of a KV head
///   buffer  tokens after which a lane is brought back to its budget while decoding
///   when    step: evicts while decoding, too; prefill: only when the prompt has been read
Preset triattention() {
  return {.name = "triattention",
          .summary =
              "keeps the entries that queries near their mean, known from a calibration, will attend to most at each "
              "distance",
          .paper = "Mao et al. 2026, TriAttention: Efficient Long Reasoning with Trigonometric KV Compression",
          .options = {{"sinks", Option::Integer{4, 0, 65536}, "first tokens that are always kept"},
                      {"recent", Option::Integer{128, 0, 65536},
                       "last tokens that are always kept, at most half of the budget after the first ones"},
                      {"prompt", Option::Choice{"stay", {"stay", "evict"}},
                       "stay: a prompt that takes at most half of the budget is always kept"},
                      {"future", Option::Integer{65536, 1, 1048576},
                       "largest distance of the future queries over which scores are averaged"},
                      {"gqa", Option::Choice{"max", {"max", "mean"}},
                       "reduction of standard scores over the query heads of a KV head"},
                      buffer_option(),
                      {"when", Option::Choice{"step", {"step", "prefill"}}, "when entries are evicted"}},
          .build = build_triattention};
}

}  // namespace winnow::policy::methods
