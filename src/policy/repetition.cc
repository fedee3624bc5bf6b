// SPDX-License-Identifier: Apache-2.0
#include "policy/repetition.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "policy/observers/replayed.h"
#include "policy/pieces.h"
#include "policy/rows.h"

namespace winnow::policy {

namespace {

/// When a chunk is repeated.
enum class After : std::uint8_t { text, chunk };

Replay repeated(int tokens, int chunk, After after) {
  constexpr int kCue = 8;
  Replay out;
  if (after == After::chunk) out.name = fmt::format("repetition by {}", chunk);
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
    if (after == After::chunk) out.passages.back().after = first + count;
  }
  return out;
}

/// Weight of the repetition relative to the other scores. The repetition attends to much of the text, which a small
/// budget cannot hold; there it would displace what the question needs.
double weight_of_repetition(int budget, int tokens, double even) {
  constexpr double kLeast = 0.02;  // least weight that is worth a repetition
  const double weight = std::pow(static_cast<double>(budget) / tokens / even, 3);
  return weight < kLeast ? 0 : std::min(1.0, weight);
}

ScorePart joined(const ScorePart& score, const std::optional<Pieces>& pieces,
                 ResultPlace<attention::ColumnStatistics> repeated, double even) {
  const std::string own = pieces ? score.text + "; " + pieces->divide.text : score.text;
  return {fmt::format("{}; or, if that is more, the largest attention from the repetition times (share of the "
                      "budget / {})^3, at most 1",
                      own, even),
          [score, pieces, repeated, even](const LayerView& view, const AlwaysKept& always_kept) {
            Scores out = score.call(view, always_kept);
            if (pieces) out = of_pieces(pieces->divide, view, std::move(out), always_kept);
            const double weight = weight_of_repetition(view.budget, view.tokens(), even);
            if (weight == 0) return out;
            add_rows(out, view[repeated], view.shape, {attention::Reduction::max, weight});
            return out;
          }};
}

}  // namespace

std::vector<Option> repetition_options() {
  return {{"chunk", Option::Integer{2048, 1, 65536}, "tokens that are repeated at a time"},
          {"after", Option::Choice{"text", {"text", "chunk"}},
           "whether chunks are repeated after the whole text, or each as soon as it is read, so that later text does "
           "not change scores"}};
}

std::string repetition_text(const Options& options) {
  return fmt::format("a repetition of the text, in chunks of {} tokens{}", options.integer("chunk"),
                     options.text("after") == "chunk" ? ", each as soon as it is read" : "");
}

std::function<Replay(const LayerPrompt&, int budget)> repetition(const Options& options, attention::RowScale scale) {
  const auto after = options.text("after") == "chunk" ? After::chunk : After::text;
  return [chunk = options.integer("chunk"), after, scale](const LayerPrompt& prompt, int) {
    Replay out = repeated(prompt.tokens, chunk, after);
    out.scale = scale;
    return out;
  };
}

std::vector<Option> joined_repetition_options() {
  auto out = repetition_options();
  out.insert(out.begin(), {"even", Option::Number{0.28, 0.001, 1000},
                           "budget, as a share of the prompt, from which the repetition counts fully; below, its "
                           "weight falls with the cube"});
  return out;
}

void join_repetition(Method& method, const Options& options) {
  auto& selection = method.selection;
  const double even = options.number("even");
  const auto all = repetition(options, attention::RowScale::one);
  const auto repeated = method.observers.add(
      observe_replay(repetition_text(options) + ", unless the budget is too small for it",
                     [all, even](const LayerPrompt& prompt, int budget) {
                       return weight_of_repetition(budget, prompt.tokens, even) > 0 ? all(prompt, budget) : Replay{};
                     }),
      {.ranking = true});
  selection.score = joined(selection.score, selection.pieces, repeated, even);
  if (!selection.pieces) return;
  selection.pieces.reset();
  selection.select = {};
}

}  // namespace winnow::policy
