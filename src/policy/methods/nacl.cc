// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "policy/counter_random.h"
#include "policy/methods/presets.h"
#include "policy/observers/columns.h"
#include "policy/top.h"
#include "winnow/policy/score.h"

namespace winnow::policy::methods {

namespace {

/// Number of proxy queries: the last hundredth of the prompt.
int proxies(int tokens) { return std::max(1, tokens / 100); }

AlwaysKept always_kept(const LayerPrompt& prompt, int budget) {
  const int sinks = std::min(256, budget / 4);
  return {sinks, std::min(proxies(prompt.tokens), (budget - sinks) / 4)};
}

/// Gumbel trick: drawing without replacement with probabilities p is the same as taking the largest of log p + Gumbel
/// noise (Yellott, 1977). Here log p is the score plus a constant.
std::vector<float> gumbel_keys(std::span<const float> scores, std::uint64_t seed, int layer, int head) {
  std::vector<float> keys;
  for (std::size_t j = 0; j < scores.size(); ++j) {
    const double u = uniform_at(seed, layer, head, static_cast<int>(j));
    keys.push_back(static_cast<float>(scores[j] - std::log(-std::log(u + 0x1p-54))));
  }
  return keys;
}

void draw(const LayerView& view, const Scores& scores, std::vector<std::vector<std::int32_t>>& selected,
          std::span<const int> counts, const AlwaysKept& always_kept, std::uint64_t seed) {
  for (int head = 0; head < scores.heads(); ++head) {
    auto& kept = selected[head];
    auto keys = gumbel_keys(scores.head(head), seed, view.number, head);
    for (const auto j : kept) keys[j] = std::numeric_limits<float>::infinity();
    kept = top(keys, counts[head], always_kept);
  }
}

}  // namespace

/// NACL (Chen et al., 2024, "NACL: A General and Effective KV Cache Eviction Framework for LLMs at Inference Time",
/// section 3): the attention of a few proxy queries ranks the entries. A part of the places is drawn at random, with
/// probabilities from the softmax of the scores, against the bias of the ranking. The first min(256, B / 4) tokens are
/// always kept, and the proxies, up to a quarter of the rest of the budget.
///   gqa   how scores are combined over the query heads of a KV head
///   seed  seed of the random draw
Preset nacl() {
  return {
      .name = "nacl",
      .summary =
          "keeps the entries that the last 1 % of the queries attend to most, and draws 7 of 19 entries at random",
      .paper = "Chen et al. 2024, NACL: A General and Effective KV Cache Eviction Framework for LLMs at Inference Time",
      .options = {{"gqa", Option::Choice{"mean", {"mean", "max", "sum"}},
                   "reduction over the query heads of a KV head"},
                  {"seed", Option::Integer{0, 0, 2147483647}, "seed of the draws"}},
      .build = [](const Options& options) {
        const Reduce gqa = reduce_from(options.text("gqa"));
        const auto seed = static_cast<std::uint64_t>(options.integer("seed"));
        Method method;
        const auto attention = method.observers.add(
            observe_columns(
                "sum of the attention of the last 1 % of the queries",
                [](const LayerPrompt& prompt, int) {
                  return attention::ColumnRequest{{attention::QueryRowSet::Kind::last, proxies(prompt.tokens), {}}};
                }),
            {.ranking = true});
        method.selection.always_kept = {
            "the first min(256, B / 4) tokens, and the last 1 % of the tokens, but at most a quarter of the rest",
            always_kept};
        method.selection.least = {"nothing, with the smallest budget", [](const LayerPrompt&) { return 0; }};
        method.selection.score = {"attention of the last 1 % of the queries",
                                  [attention, gqa](const LayerView& view, const AlwaysKept&) {
                                    return reduce_group(view[attention], view.shape, gqa);
                                  }};
        method.selection.draw = {
            "in proportion to the softmax of the scores",
            [seed](const LayerView& view, const Scores& scores, std::vector<std::vector<std::int32_t>>& selected,
                   std::span<const int> counts,
                   const AlwaysKept& always_kept) { draw(view, scores, selected, counts, always_kept, seed); }};
        method.selection.drawn_share = 7.0 / 19;
        method.schedule = Schedule::once;
        return method;
      }};
}

}  // namespace winnow::policy::methods
