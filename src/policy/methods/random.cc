// SPDX-License-Identifier: Apache-2.0
#include "policy/counter_random.h"
#include "policy/methods/presets.h"
#include "policy/rows.h"

namespace winnow::policy::methods {

/// Uniformly random scores: the baseline.
///   seed  seed of the scores
Preset random() {
  return {.name = "random",
          .summary = "keeps random entries, as a baseline",
          .paper = "a baseline",
          .options = {{"seed", Option::Integer{0, 0, 2147483647}, "seed of the choice"}},
          .build = [](const Options& options) {
            const auto seed = static_cast<std::uint64_t>(options.integer("seed"));
            Method method;
            rank_by(method, "uniformly random", 0, [seed](const LayerView& view, const AlwaysKept&) {
              Scores scores(view.shape.kv_heads, view.tokens());
              for (int head = 0; head < scores.heads(); ++head) {
                for (int j = 0; j < scores.size(); ++j) {
                  scores.head(head)[j] = static_cast<float>(uniform_at(seed, view.number, head, j));
                }
              }
              return scores;
            });
            return method;
          }};
}

}  // namespace winnow::policy::methods
