// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "policy/methods/presets.h"
#include "policy/observers/replayed.h"
#include "winnow/policy/score.h"

namespace winnow::policy::methods {

namespace {

/// Replays the prompt's last tokens at the positions of the answer.
Replay pseudo_queries(int tokens, int queries) {
  const int count = std::min(queries, tokens);
  return {{{.first = tokens - count, .count = count}}, attention::Reduction::max};
}

}  // namespace

/// DapQ (Tian et al., 2026, "Where Matters More Than What: Decoding-aligned KV Cache Compression via Position-aware
/// Pseudo Queries"): an answer's attention depends on its position more than on its words. Some tokens are replayed at
/// the positions after the prompt, and an entry's score is the largest attention that it gets from them. The choice of
/// tokens, the pooling and the always kept entries are winnow's own.
///   queries  last tokens of the prompt that are replayed
///   recent   last tokens that are always kept
///   kernel   length of the pooling along positions
///   pool     max or mean
///   gqa      how scores are combined over the query heads of a KV head
Preset dapq() {
  return {
      .name = "dapq",
      .summary = "keeps the entries that queries at the answer's positions attend to most, and their neighbours",
      .paper =
          "Tian et al. 2026, Where Matters More Than What: Decoding-aligned KV Cache Compression via "
          "Position-aware Pseudo Queries",
      .options = {{"queries", Option::Integer{16, 1, 1024}, "tokens that are read again, at the answer's positions"},
                  {"recent", Option::Integer{8, 0, 65536}, "last tokens that are always kept"},
                  {"kernel", Option::Integer{7, 1, 1025}, "odd length of the pooling along positions"},
                  {"pool", Option::Choice{"max", {"max", "mean"}}, "pooling of scores"},
                  {"gqa", Option::Choice{"mean", {"mean", "max", "sum"}},
                   "reduction over the query heads of a KV head"}},
      .build = [](const Options& options) {
        const int queries = options.integer("queries");
        const int recent = options.integer("recent");
        const Reduce gqa = reduce_from(options.text("gqa"));
        const Pooling pooling{pool_from(options.text("pool")), odd_kernel(options), Pad::valid};
        const auto kept = [recent](const LayerPrompt& prompt) { return std::min(recent, prompt.tokens); };
        Method method;
        const auto attention = method.observers.add(observe_replay(fmt::format("the last {} tokens", queries),
                                                                   [queries](const LayerPrompt& prompt, int) {
                                                                     return pseudo_queries(prompt.tokens, queries);
                                                                   }),
                                                    {.ranking = true});
        method.selection.always_kept = {recent == 0 ? "nothing" : fmt::format("the last {} tokens", recent),
                                        [kept](const LayerPrompt& prompt, int) {
                                          return AlwaysKept{0, kept(prompt)};
                                        }};
        method.selection.least = {method.selection.always_kept.text, kept};
        method.selection.score = {
            fmt::format("{}-pooled maximum of the attention from the tokens that are read again, {} over the group",
                        options.text("pool"), options.text("gqa")),
            [attention, gqa, pooling](const LayerView& view, const AlwaysKept& always_kept) {
              Scores scores = reduce_group(view[attention], view.shape, gqa);
              pool_evictable(scores, always_kept, pooling);
              return scores;
            }};
        method.schedule = Schedule::once;
        return method;
      }};
}

}  // namespace winnow::policy::methods
