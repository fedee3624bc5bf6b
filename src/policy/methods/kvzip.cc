// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>

#include "policy/methods/presets.h"
#include "policy/repetition.h"
#include "policy/rows.h"
#include "winnow/policy/score.h"
#include "winnow/policy/spread.h"

namespace winnow::policy::methods {

namespace {

/// Each query head's attention times what it makes of the value, then the largest of the group.
Scores of_outputs(const LayerView& view) {
  Scores by_head(view.shape.query_heads, view.tokens());
  for (int h = 0; h < by_head.heads(); ++h) {
    const auto attention = view.replayed->head(h);
    const auto lengths = view.output_lengths->euclidean.head(h);
    std::transform(attention.begin(), attention.end(), lengths.begin(), by_head.head(h).begin(), std::multiplies());
  }
  return reduce_group(by_head, view.shape, Reduce::max);
}

/// KVzip+.
void count_outputs(Method& method) {
  method.selection.output_lengths = true;
  method.selection.score = {"the largest attention from the repetition, by what it adds to the output",
                            [](const LayerView& view, const AlwaysKept&) { return of_outputs(view); }};
  method.reading.replay.call = [all = method.reading.replay.call](const LayerPrompt& prompt, int budget) {
    Replay out = all(prompt, budget);
    out.scale = attention::RowScale::inverse_input;
    return out;
  };
}

}  // namespace

/// KVzip (Kim et al., 2025, "KVzip: Query-Agnostic KV Cache Compression with Context Reconstruction", section 3): what
/// the model needs to repeat the context is what any question will need. The context is read again after itself, chunk
/// by chunk; an entry is worth the largest attention that it gets from its own chunk.
///   chunk  tokens that are repeated together
///   sinks  first tokens that are always kept
///   normalize  plus: KVzip+ (Jegou and Jeblick, 2026, "KVzap: Fast, Adaptive, and Faithful KV Cache Pruning"): each
///              probability counts by what it adds to the output, over the length of the row that asks
///   rank   whether each head keeps its own best entries, or the best of all heads of all layers are kept
Preset kvzip() {
  return {.name = "kvzip",
          .summary = "what the model looks at when it repeats the text, whatever the question",
          .paper = "Kim et al. 2025, KVzip: Query-Agnostic KV Cache Compression with Context Reconstruction",
          .options = {repetition_option(),
                      {"sinks", Option::Integer{4, 0, 65536}, "first tokens that are always kept"},
                      {"normalize", Option::Choice{"none", {"none", "plus"}},
                       "plus: attention times the value's part of the output, over the length of the row that asks"},
                      {"rank", Option::Choice{"head", {"head", "model"}},
                       "whose best entries are kept: each head's, or those of all layers, in a second pass"}},
          .build = [](const Options& options) {
            Method method = ranked_by("the largest attention from the repetition, over the query heads",
                                      options.integer("sinks"), [](const LayerView& view, const AlwaysKept&) {
                                        return reduce_group(*view.replayed, view.shape, Reduce::max);
                                      });
            method.reading.replay = repetition(options);
            if (options.text("normalize") == "plus") count_outputs(method);
            if (options.text("rank") == "model") {
              method.selection.over_heads = adaptive(0, FloorRule::blend);
              method.selection.over_heads.text = "by the best of all layers";
              method.selection.heads_of_all_layers = true;
            }
            return method;
          }};
}

}  // namespace winnow::policy::methods
