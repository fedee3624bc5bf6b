#include "policy/rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace winnow::policy {

double norm(std::span<const float> row) { return std::sqrt(std::inner_product(row.begin(), row.end(), row.begin(), 0.0)); }

Method ranked_by(std::string text, int sinks, std::function<Scores(const LayerView&, const Forced&)> score) {
  Method method;
  method.forced = {sinks == 0 ? "nothing" : "the first " + std::to_string(sinks) + " tokens", [sinks](const Prompt& prompt, int) {
                     return Forced{std::min(sinks, prompt.tokens), 0};
                   }};
  method.least = {method.forced.text, [sinks](const Prompt& prompt) { return std::min(sinks, prompt.tokens); }};
  method.score = {std::move(text), std::move(score)};
  method.schedule = Schedule::once;
  return method;
}

}  // namespace winnow::policy
