// SPDX-License-Identifier: Apache-2.0
#include "policy/critical.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/as_size.h"
#include "policy/observers/output_lengths.h"
#include "policy/top.h"
#include "winnow/policy/score.h"

namespace winnow::policy {

namespace {

struct Rounds {
  double share;    ///< share of the budget that the first round fills
  double epsilon;  ///< lets entries with a score of 0 rank by their values
};

/// The `count` best entries of one head. `scores` and `lengths`: [n].
std::vector<std::int32_t> chosen(std::span<const float> scores, std::span<const float> lengths, int count,
                                 const Rounds& rounds, const AlwaysKept& always_kept) {
  const int budget = count + always_kept.total();
  const int first = static_cast<int>(std::floor(rounds.share * budget)) - always_kept.total();
  constexpr float kLargest = std::numeric_limits<float>::max();
  std::vector<float> by(scores.size());
  for (std::size_t j = 0; j < by.size(); ++j) {
    const double x = (scores[j] + rounds.epsilon) * lengths[j];
    by[j] = x > kLargest ? kLargest : static_cast<float>(x);
  }
  for (const auto j : top(scores, std::clamp(first, 0, count), always_kept))
    by[j] = std::numeric_limits<float>::infinity();
  return top(by, count, always_kept);
}

}  // namespace

std::vector<Option> critical_options() {
  return {
      {"share", Option::Number{0.5, 0, 1}, "share of the budget that is selected by scores alone"},
      {"epsilon", Option::Number{1e-4, 0, 1}, "constant that is added to a score before it is multiplied by a length"}};
}

void choose_critical(Method& method, const Options& options) {
  auto& selection = method.selection;
  const auto outputs = method.observers.add(observe_output_lengths(), {.keeping = true});
  const Rounds rounds{options.number("share"), options.number("epsilon")};
  selection.select_bytes = [](const LayerPrompt& prompt) {
    return as_size(prompt.kv_heads) * as_size(prompt.tokens) * sizeof(float);
  };
  selection.two_rounds = true;
  selection.select = {
      fmt::format("{} of the budget by score, the rest by score times the value's part of the output", rounds.share),
      [rounds, outputs](const LayerView& view, const Scores& scores, std::span<const int> counts,
                        const AlwaysKept& always_kept) {
        const Scores lengths = reduce_group(view[outputs].absolute, view.shape, Reduce::mean);
        std::vector<std::vector<std::int32_t>> out;
        for (int head = 0; head < scores.heads(); ++head)
          out.push_back(chosen(scores.head(head), lengths.head(head), counts[head], rounds, always_kept));
        return out;
      }};
}

}  // namespace winnow::policy
