// SPDX-License-Identifier: Apache-2.0
#include "policy/window.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <iterator>

#include "winnow/policy/score.h"

namespace winnow::policy {

std::vector<Option> window_options(std::vector<Option> more) {
  std::vector<Option> out = {
      {"window", Option::Integer{32, 1, 65536}, "last queries that are observed and entries that are always kept"},
      {"kernel", Option::Integer{7, 1, 1025}, "length of the pooling along positions, odd"},
      {"pool", Option::Choice{"max", {"max", "mean"}}, "how scores are pooled"},
      {"pad", Option::Choice{"valid", {"valid", "count"}}, "what mean pooling divides by at the ends"},
      {"gqa", Option::Choice{"mean", {"mean", "max", "sum"}}, "how query heads of one KV head are combined"}};
  std::move(more.begin(), more.end(), std::back_inserter(out));
  return out;
}

Method window_method(const Options& options) {
  const int window = options.integer("window");
  const Reduce gqa = reduce_from(options.text("gqa"));
  const Pooling pooling{pool_from(options.text("pool")), odd_kernel(options), pad_from(options.text("pad"))};
  Method method;
  method.reading.observe = observe_last(window);
  method.selection.always_kept = {fmt::format("the last {} tokens", window), [window](const LayerPrompt& prompt, int) {
                                    return AlwaysKept{0, std::min(window, prompt.tokens)};
                                  }};
  method.selection.least = {"the window",
                            [window](const LayerPrompt& prompt) { return std::min(window, prompt.tokens); }};
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
