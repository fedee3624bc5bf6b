// SPDX-License-Identifier: Apache-2.0
#include "policy/repetition.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "policy/observers/replayed.h"
#include "policy/pieces.h"
#include "winnow/policy/score.h"

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

/// How much a repetition counts beside other scores.
struct Counting {
  double even;    ///< budget, as a share of the prompt, from which it counts fully
  double demand;  ///< the same, as a multiple of its demand
  double sharp;   ///< least mean attention of some head to the tokens that are repeated
};

/// Weight for a budget that is `share` of what is needed. The repetition attends to much of the text; in a small budget
/// it would displace what the question needs.
double weight_of(double share) {
  constexpr double kLeast = 0.02;  // least weight that is worth a repetition
  const double weight = std::pow(share, 3);
  return weight < kLeast ? 0 : std::min(1.0, weight);
}

/// Sum of each head's scores, [heads]: entries, each by the attention that it gets.
std::vector<double> demands(const Scores& repeated) {
  std::vector<double> out;
  for (int head = 0; head < repeated.heads(); ++head) {
    const auto scores = repeated.head(head);
    out.push_back(std::accumulate(scores.begin(), scores.end(), 0.0));
  }
  return out;
}

/// Weight of the repetition in heads that share `budget` entries per head; 0 if none of them repeats.
double weight_of_repetition(const Scores& repeated, int budget, const Counting& counting) {
  constexpr double kShort = 400;  // tokens below which chance comes near the least attention
  const auto of_heads = demands(repeated);
  const double tokens = repeated.size();
  if (*std::ranges::max_element(of_heads) < counting.sharp * std::max(tokens, kShort)) return 0;
  const double demand = std::accumulate(of_heads.begin(), of_heads.end(), 0.0) / repeated.heads();
  return weight_of(budget / std::max(counting.even * tokens, counting.demand * demand));
}

JoinPart joined_by(const Counting& counting) {
  return {
      fmt::format("or, if that is more, the largest attention from the repetition times (budget / {} of the prompt, "
                  "or {} times the entries that it attends to)^3, at most 1",
                  counting.even, counting.demand),
      [counting](Scores& scores, const Scores& repeated, int budget) {
        const double weight = weight_of_repetition(repeated, budget, counting);
        for (int head = 0; weight > 0 && head < scores.heads(); ++head) {
          const auto to = scores.head(head);
          const auto more = repeated.head(head);
          for (std::size_t j = 0; j < to.size(); ++j) {
            const double x = weight * more[j];
            if (x > to[j]) to[j] = static_cast<float>(x);
          }
        }
      }};
}

/// Scores of the entries of pieces.
ScorePart by_pieces(const ScorePart& score, const DividePart& divide) {
  return {score.text + "; " + divide.text, [score, divide](const LayerView& view, const AlwaysKept& always_kept) {
            return of_pieces(divide, view, score.call(view, always_kept), always_kept);
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
  out.insert(out.begin(),
             {{"even", Option::Number{0.28, 0.001, 1000},
               "budget, as a share of the prompt, from which the repetition counts fully; below, its weight falls with "
               "the cube"},
              {"demand", Option::Number{5, 0, 1000},
               "the same, as a multiple of the entries that the repetition attends to; the larger budget counts"},
              {"sharp", Option::Number{0.05, 0, 1},
               "least mean attention of some head to the tokens that are repeated; with less, nothing counts"}});
  return out;
}

void join_repetition(Method& method, const Options& options) {
  auto& selection = method.selection;
  const Counting counting{options.number("even"), options.number("demand"), options.number("sharp")};
  const auto all = repetition(options, attention::RowScale::one);
  const auto repeated =
      method.observers.add(observe_replay(repetition_text(options) + ", unless the budget is too small for it",
                                          [all, even = counting.even](const LayerPrompt& prompt, int budget) {
                                            if (weight_of(budget / (even * prompt.tokens)) == 0) return Replay{};
                                            Replay out = all(prompt, budget);
                                            out.rows = ReplayedRows::copies;
                                            return out;
                                          }),
                           {.ranking = true});
  selection.second_score = {"the largest attention of the repetition to the token that is repeated",
                            [repeated](const LayerView& view, const AlwaysKept&) {
                              const auto& attention = view[repeated];
                              return attention.query_heads() == 0 ? Scores(view.shape.kv_heads, view.tokens())
                                                                  : reduce_group(attention, view.shape, Reduce::max);
                            }};
  selection.join = joined_by(counting);
  if (!selection.pieces) return;
  selection.score = by_pieces(selection.score, selection.pieces->divide);
  selection.pieces.reset();
  selection.select = {};
}

}  // namespace winnow::policy
