#include <algorithm>

#include "policy/methods/presets.h"
#include "policy/score.h"
#include "winnow/error.h"

namespace winnow::policy::methods {

/// SnapKV (Li et al., 2024, "SnapKV: LLM Knows What You are Looking for Before Generation", section 4): the attention of the prompt's last
/// queries says what the answer will need; pooling keeps the neighbours of what is needed.
///   window  last queries that are observed, and entries that always stay
///   kernel  length of the pooling along positions
///   pool    max or mean
///   pad     what mean pooling divides by at the ends: the entries under the kernel (valid) or its length (count)
///   gqa     how the query heads that share a KV head are brought together
Preset snapkv() {
  return {.name = "snapkv",
          .summary = "what the last queries of the prompt attend to, with its neighbours",
          .paper = "Li et al. 2024, SnapKV: LLM Knows What You are Looking for Before Generation",
          .options = {{"window", Option::Integer{32, 1, 65536}, "last queries that are observed and entries that always stay"},
                      {"kernel", Option::Integer{7, 1, 1025}, "length of the pooling along positions, odd"},
                      {"pool", Option::Choice{"max", {"max", "mean"}}, "how scores are pooled"},
                      {"pad", Option::Choice{"valid", {"valid", "count"}}, "what mean pooling divides by at the ends"},
                      {"gqa", Option::Choice{"mean", {"mean", "max", "sum"}}, "how query heads of one KV head are combined"}},
          .build = [](const Options& options) {
            const int window = options.integer("window");
            const Reduce gqa = reduce_from(options.text("gqa"));
            if (options.integer("kernel") % 2 == 0) throw UsageError("snapkv: the kernel must be odd, so that it has a middle");
            const Pooling pooling{pool_from(options.text("pool")), options.integer("kernel"), pad_from(options.text("pad"))};
            Method method;
            method.observe = {{{attention::ObservedRows::Kind::last, window, {}}, attention::Reduction::sum}};
            method.forced = {"the last " + std::to_string(window) + " tokens", [window](int tokens, int) {
                               return Forced{0, std::min(window, tokens)};
                             }};
            method.least = {"the window", [window](int tokens) { return std::min(window, tokens); }};
            method.score = {options.text("pool") + "-pooled attention of the window, " + options.text("gqa") + " over the group",
                            [gqa, pooling](const LayerView& view, const Forced& forced) {
                              Scores scores = reduce_group(view.observations[0], view.shape, gqa);
                              pool_evictable(scores, forced, pooling);
                              return scores;
                            }};
            method.schedule = Schedule::once;
            return method;
          }};
}

}  // namespace winnow::policy::methods
