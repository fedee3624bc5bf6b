// SPDX-License-Identifier: Apache-2.0
#include "policy/repetition.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "policy/pieces.h"
#include "winnow/policy/score.h"

namespace winnow::policy {

namespace {

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

ScorePart joined(const ScorePart& score, const std::optional<Pieces>& pieces, double weight) {
  return {fmt::format("{}{}, or {} of the largest attention from the repetition", score.text,
                      pieces ? " over " + pieces->divide.text : "", weight),
          [score, pieces, weight](const LayerView& view, const AlwaysKept& always_kept) {
            Scores out = score.call(view, always_kept);
            if (pieces) out = of_pieces(pieces->divide, view, out, always_kept);
            const Scores repeated = reduce_group(*view.replayed, view.shape, Reduce::max);
            for (int head = 0; head < out.heads(); ++head) {
              const auto more = repeated.head(head);
              const auto to = out.head(head);
              for (std::size_t j = 0; j < to.size(); ++j) to[j] = std::max(to[j], static_cast<float>(weight * more[j]));
            }
            return out;
          }};
}

}  // namespace

Option repetition_option() { return {"chunk", Option::Integer{2048, 1, 65536}, "tokens that are repeated together"}; }

ReplayPart repetition(const Options& options) {
  const int chunk = options.integer("chunk");
  return {fmt::format("the text, in chunks of {} tokens that it is asked to repeat", chunk),
          [chunk](const LayerPrompt& prompt) { return repeated(prompt.tokens, chunk); }};
}

std::vector<Option> joined_repetition_options() {
  return {{"weight", Option::Number{0.1, 0, 1000}, "of the attention from the repetition, beside the other scores"},
          repetition_option()};
}

void join_repetition(Method& method, const Options& options) {
  auto& selection = method.selection;
  method.reading.replay = repetition(options);
  selection.score = joined(selection.score, selection.pieces, options.number("weight"));
  if (!selection.pieces) return;
  selection.pieces.reset();
  selection.select = {};
}

}  // namespace winnow::policy
