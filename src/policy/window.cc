// SPDX-License-Identifier: Apache-2.0
#include "policy/window.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <iterator>

#include "winnow/policy/score.h"

namespace winnow::policy {

int WindowLength::of(int tokens) const { return percent ? std::clamp(tokens * *percent / 100, 1, most) : most; }

std::string WindowLength::text(std::string_view what) const {
  const std::string share = percent ? fmt::format(", at most {} % of the prompt's", *percent) : "";
  return fmt::format("the last {} {}{}", most, what, share);
}

std::vector<Option> window_length_options(std::string effect) {
  return {{"window", Option::Integer{32, 1, 65536}, std::move(effect)},
          {"window-share", Option::WordOrInteger{"any", 1, 100}, "percent of the prompt that the window is at most"}};
}

WindowLength window_length(const Options& options) {
  return {options.integer("window"), options.integer_if("window-share")};
}

std::vector<Option> window_options(std::vector<Option> more) {
  std::vector<Option> out = window_length_options("last queries that are observed and entries that are always kept");
  std::vector<Option> pooling = {
      {"kernel", Option::Integer{7, 1, 1025}, "length of the pooling along positions, odd"},
      {"pool", Option::Choice{"max", {"max", "mean"}}, "how scores are pooled"},
      {"pad", Option::Choice{"valid", {"valid", "count"}}, "what mean pooling divides by at the ends"},
      {"gqa", Option::Choice{"mean", {"mean", "max", "sum"}}, "how query heads of one KV head are combined"}};
  std::move(pooling.begin(), pooling.end(), std::back_inserter(out));
  std::move(more.begin(), more.end(), std::back_inserter(out));
  return out;
}

Method window_method(const Options& options) {
  const WindowLength window = window_length(options);
  const Reduce gqa = reduce_from(options.text("gqa"));
  const Pooling pooling{pool_from(options.text("pool")), odd_kernel(options), pad_from(options.text("pad"))};
  Method method;
  const auto length = [window](const LayerPrompt& prompt) { return std::min(window.of(prompt.tokens), prompt.tokens); };
  method.reading.observe = {
      "sum of the attention of " + window.text("queries"),
      [length](const LayerPrompt& prompt, int budget) { return observe_last(length(prompt)).call(prompt, budget); }};
  method.selection.always_kept = {window.text("tokens"), [length](const LayerPrompt& prompt, int) {
                                    return AlwaysKept{0, length(prompt)};
                                  }};
  method.selection.least = {"the window", length};
  method.selection.score = {
      fmt::format("{}-pooled attention of the window, {} over the group", options.text("pool"), options.text("gqa")),
      [gqa, pooling](const LayerView& view, const AlwaysKept& always_kept) {
        Scores scores = reduce_group(view.observations[0], view.shape, gqa);
        pool_evictable(scores, always_kept, pooling);
        return scores;
      }};
  method.schedule = Schedule::once;
  return method;
}

}  // namespace winnow::policy
