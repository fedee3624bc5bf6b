// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "policy/methods/presets.h"
#include "policy/rows.h"
#include "winnow/policy/score.h"
#include "winnow/policy/spread.h"

namespace winnow::policy::methods {

namespace {

/// The prompt in chunks, each as the reply to a request to repeat it. Those after the first are told by the tokens
/// before them.
Replay repeated(int tokens, int chunk) {
  constexpr int kCue = 8;
  Replay out;
  for (int first = 0; first < tokens; first += chunk) {
    const char* const ask = first == 0 ? "\n\nRepeat the previous context exactly."
                                       : "\n\nRepeat the part of the previous context exactly, starting with ";
    const int count = std::min(chunk, tokens - first);
    out.passages.push_back({.ask = ask,
                            .cue = std::min(kCue, first),
                            .reply = "\n",
                            .first = first,
                            .count = count,
                            .recorded = {first, first + count}});
  }
  return out;
}

}  // namespace

/// KVzip (Kim et al., 2025, "KVzip: Query-Agnostic KV Cache Compression with Context Reconstruction", section 3): what
/// the model needs to repeat the context is what any question will need. The context is read again after itself, chunk
/// by chunk; an entry is worth the largest attention that it gets from its own chunk.
///   chunk  tokens that are repeated together
///   sinks  first tokens that are always kept
///   rank   whether each head keeps its own best entries, or the best of all heads of all layers are kept
Preset kvzip() {
  return {.name = "kvzip",
          .summary = "what the model looks at when it repeats the text, whatever the question",
          .paper = "Kim et al. 2025, KVzip: Query-Agnostic KV Cache Compression with Context Reconstruction",
          .options = {{"chunk", Option::Integer{2048, 1, 65536}, "tokens that are repeated together"},
                      {"sinks", Option::Integer{4, 0, 65536}, "first tokens that are always kept"},
                      {"rank", Option::Choice{"head", {"head", "model"}},
                       "whose best entries are kept: each head's, or those of all layers, in a second pass"}},
          .build = [](const Options& options) {
            const int chunk = options.integer("chunk");
            Method method = ranked_by("the largest attention from the repetition, over the query heads",
                                      options.integer("sinks"), [](const LayerView& view, const AlwaysKept&) {
                                        return reduce_group(*view.replayed, view.shape, Reduce::max);
                                      });
            method.reading.replay = {fmt::format("the text, in chunks of {} tokens that it is asked to repeat", chunk),
                                     [chunk](const LayerPrompt& prompt) { return repeated(prompt.tokens, chunk); }};
            if (options.text("rank") == "model") {
              method.selection.over_heads = adaptive(0, FloorRule::blend);
              method.selection.over_heads.text = "by the best of all layers";
              method.selection.heads_of_all_layers = true;
            }
            return method;
          }};
}

}  // namespace winnow::policy::methods
