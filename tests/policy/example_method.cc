// The method that docs/adding-a-method.md adds.
#include "example_method.h"

namespace winnow::policy::methods {

/// Keeps the entries with the longest values, and the last token.
///   recent  last tokens that always stay
Preset value_norm() {
  return {.name = "value-norm",
          .summary = "the entries with the longest values",
          .paper = "an example",
          .options = {{"recent", Option::Integer{1, 1, 65536}, "last tokens that always stay"}},
          .build = [](const Options& options) {
            const int recent = options.integer("recent");
            Method method;
            method.forced = {"the last tokens", [recent](const Prompt&, int) { return Forced{0, recent}; }};
            method.least = {"the last tokens", [recent](const Prompt&) { return recent; }};
            method.score = {"squared length of the value", [](const LayerView& view, const Forced&) {
                              Scores scores(view.shape.kv_heads, view.tokens());
                              std::vector<float> value(static_cast<std::size_t>(view.shape.head_dim));
                              for (int head = 0; head < view.shape.kv_heads; ++head) {
                                const cache::Rows rows = view.scratch->values(head);
                                for (int j = 0; j < view.tokens(); ++j) {
                                  cache::decode_row(rows.type, rows.row(j), value);
                                  for (const float x : value) scores.head(head)[static_cast<std::size_t>(j)] += x * x;
                                }
                              }
                              return scores;
                            }};
            method.schedule = Schedule::once;
            return method;
          }};
}

}  // namespace winnow::policy::methods
