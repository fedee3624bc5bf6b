// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <memory>
#include <string>

#include "policy/observers/columns.h"
#include "policy/observers/replayed.h"
#include "policy/rows.h"
#include "policy/wrappers.h"
#include "winnow/error.h"
#include "winnow/policy/score.h"

namespace winnow::policy::wrappers {

namespace {

using attention::Reduction;

/// Results for the window's queries and the draft's.
struct Attention {
  ResultPlace<attention::ColumnStatistics> window;
  ResultPlace<attention::ColumnStatistics> draft;
};

ObserverPart<attention::ColumnStatistics> last_rows(int window, Reduction reduction) {
  return observe_columns(fmt::format("{} of the attention of the last {} queries",
                                     reduction == Reduction::sum ? "sum" : "maximum", window),
                         [window, reduction](const LayerPrompt& prompt, int) {
                           const int count = std::min(window, prompt.tokens);
                           return attention::ColumnRequest{{attention::QueryRowSet::Kind::last, count, {}}, reduction};
                         });
}

ObserverPart<attention::ColumnStatistics> draft_of(const Method& drafter, int tokens, Reduction reduction) {
  return observe_replay(fmt::format("a draft of up to {} tokens by {}", tokens, drafter.name),
                        [tokens, reduction](const LayerPrompt&, int) {
                          return Replay{{{.drafted = tokens}}, reduction};
                        });
}

ScorePart of_both(const Attention& seen, Reduction reduction, const Pooling& pooling, const std::string& pool) {
  const bool sum = reduction == Reduction::sum;
  return {fmt::format("{}-pooled {} of the attention of the window and of the draft", pool, sum ? "sum" : "maximum"),
          [seen, reduction, pooling, sum](const LayerView& view, const AlwaysKept& always_kept) {
            Scores scores = reduce_group(view[seen.window], view.shape, sum ? Reduce::sum : Reduce::max);
            add_rows(scores, view[seen.draft], view.shape, {reduction});
            pool_evictable(scores, always_kept, pooling);
            return scores;
          }};
}

Method drafted_by(const Method& drafter, const Options& options) {
  const int tokens = options.integer("draft");
  const int window = options.integer("window");
  const Reduction reduction = options.text("rows") == "sum" ? Reduction::sum : Reduction::max;
  const Pooling pooling{pool_from(options.text("pool")), odd_kernel(options), Pad::valid};
  Method method;
  method.draft = Draft{std::make_shared<const Method>(drafter), tokens};
  const Attention seen{method.observers.add(last_rows(window, reduction), {.ranking = true}),
                       method.observers.add(draft_of(drafter, tokens, reduction), {.ranking = true})};
  method.selection.always_kept = {fmt::format("the last {} tokens", window), [window](const LayerPrompt& prompt, int) {
                                    return AlwaysKept{0, std::min(window, prompt.tokens)};
                                  }};
  method.selection.least = {"the window, and the least that the drafter keeps",
                            [window, least = drafter.selection.least](const LayerPrompt& prompt) {
                              const int own = std::min(window, prompt.tokens);
                              return least ? std::max(own, least.call(prompt)) : own;
                            }};
  method.selection.score = of_both(seen, reduction, pooling, options.text("pool"));
  method.schedule = Schedule::once;
  if (drafter.positions == Positions::cache) method.positions = Positions::cache;
  return method;
}

}  // namespace

/// LAQ (Wang et al., 2025, "Lookahead Q-Cache: Achieving More Consistent KV Cache Eviction via Pseudo Query"). X's
/// cache generates the first tokens of an answer. The attention of these and of the prompt's last queries decides which
/// entries are kept, and the answer starts again.
///   draft   tokens of the draft, generated with X's cache
///   window  last queries that are observed, too, and last entries that are always kept
///   kernel  length of the pooling along positions
///   pool    max or mean
///   rows    how attention is combined over queries and over the query heads of a KV head
Wrapper lookahead() {
  return {
      .name = "lookahead",
      .summary = "keeps the entries that the prompt's last queries and a draft from X's cache attend to most",
      .paper = "Wang et al. 2025, Lookahead Q-Cache: Achieving More Consistent KV Cache Eviction via Pseudo Query",
      .options = {{"draft", Option::Integer{8, 1, 1024}, "tokens of the draft, generated with X's cache"},
                  {"window", Option::Integer{8, 1, 65536},
                   "last queries that are observed, too, and last entries that are always kept"},
                  {"kernel", Option::Integer{7, 1, 1025}, "odd length of the pooling along positions"},
                  {"pool", Option::Choice{"max", {"max", "mean"}}, "pooling of scores"},
                  {"rows", Option::Choice{"sum", {"sum", "max"}},
                   "reduction over the queries, and over the query heads of a KV head"}},
      .apply = [](const Method& inner, const Options& options) {
        if (inner.draft) {
          throw UsageError(fmt::format(
              "lookahead({0}) is not possible: {0} already has a draft, which needs a pass of its own", inner.name));
        }
        if (inner.selection.heads_of_all_layers) {
          throw UsageError(fmt::format(
              "lookahead({0}) is not possible: {0} ranks the entries of all layers, which needs a pass of its own",
              inner.name));
        }
        return drafted_by(inner, options);
      }};
}

}  // namespace winnow::policy::wrappers
