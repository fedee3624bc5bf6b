// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <utility>

#include "base/as_size.h"
#include "policy/methods/presets.h"
#include "policy/observers/output_lengths.h"
#include "policy/observers/replayed.h"
#include "policy/repetition.h"
#include "policy/rows.h"
#include "winnow/policy/score.h"
#include "winnow/policy/spread.h"

namespace winnow::policy::methods {

namespace {

/// Attention of each query head times the length of its output for the value; the maximum over the group.
Scores of_outputs(const LayerView& view, const attention::ColumnStatistics& repeated, const OutputLengths& outputs) {
  Scores by_head(view.shape.query_heads, view.tokens());
  for (int h = 0; h < by_head.heads(); ++h) {
    const auto attention = repeated.head(h);
    const auto lengths = outputs.euclidean.head(h);
    std::transform(attention.begin(), attention.end(), lengths.begin(), by_head.head(h).begin(), std::multiplies());
  }
  return reduce_group(by_head, view.shape, Reduce::max);
}

/// Changes the method to KVzip+.
void count_outputs(Method& method, ResultPlace<attention::ColumnStatistics> repeated) {
  const auto outputs = method.observers.add(observe_output_lengths(), {.ranking = true});
  method.selection.score = {"the largest attention from the repetition, in proportion to what it adds to the output",
                            [repeated, outputs](const LayerView& view, const AlwaysKept&) {
                              return of_outputs(view, view[repeated], view[outputs]);
                            }};
  method.selection.score_bytes = [](const LayerPrompt& prompt) {
    return as_size(prompt.query_heads()) * as_size(prompt.tokens) * sizeof(float);
  };
}

}  // namespace

/// KVzip (Kim et al., 2025, "KVzip: Query-Agnostic KV Cache Compression with Context Reconstruction", section 3):
/// entries that the model needs to repeat the context are those that any question will need. The context is replayed
/// chunk by chunk; an entry's score is the largest attention that it gets from its own chunk.
///   chunk, after  see repetition_options()
///   sinks  first tokens that are always kept
///   normalize  plus: KVzip+ (Jegou and Jeblick, 2026, "KVzap: Fast, Adaptive, and Faithful KV Cache Pruning"): each
///              probability is multiplied by the length of the value after the output projection, and divided by the
///              length of the query's layer input
///   rank   head: each head keeps its own best entries; model: the best of all heads of all layers are kept
Preset kvzip() {
  auto declared = repetition_options();
  declared.insert(declared.end(),
                  {{"sinks", Option::Integer{4, 0, 65536}, "first tokens that are always kept"},
                   {"normalize", Option::Choice{"none", {"none", "plus"}},
                    "plus: attention times the value's part of the output, divided by the length of the query's row"},
                   {"rank", Option::Choice{"head", {"head", "model"}},
                    "whether entries are ranked by head, or over all layers, which takes a second pass"}});
  return {.name = "kvzip",
          .summary = "keeps the entries that the model attends to when it repeats the text, whatever the question",
          .paper = "Kim et al. 2025, KVzip: Query-Agnostic KV Cache Compression with Context Reconstruction",
          .options = std::move(declared),
          .build = [](const Options& options) {
            Method method;
            const bool plus = options.text("normalize") == "plus";
            const auto scale = plus ? attention::RowScale::inverse_input : attention::RowScale::one;
            const auto repeated = method.observers.add(
                observe_replay(repetition_text(options), repetition(options, scale)), {.ranking = true});
            rank_by(method, "the largest attention from the repetition, over the query heads", options.integer("sinks"),
                    [repeated](const LayerView& view, const AlwaysKept&) {
                      return reduce_group(view[repeated], view.shape, Reduce::max);
                    });
            if (plus) count_outputs(method, repeated);
            if (options.text("rank") == "model") {
              method.selection.over_heads = adaptive(0, FloorRule::blend);
              method.selection.over_heads.text = "by the number of entries among the best of all layers";
              method.selection.heads_of_all_layers = true;
            }
            return method;
          }};
}

}  // namespace winnow::policy::methods
