#include <spdlog/fmt/fmt.h>


#include "policy/method.h"
#include "policy/select.h"
#include "winnow/error.h"

namespace winnow::policy {

namespace {

/// Methods that score keep at least one entry for it; those that only force need nothing more.
void check_budget(const Method& method, int budget, int tokens) {
  const int least = least_budget(method, tokens);
  if (budget < least) {
    throw UsageError(fmt::format("{} cannot work with a budget of {} entries per KV head: at least {} are needed for {} tokens", method.name,
                                 budget, least, tokens));
  }
}

}  // namespace

int least_budget(const Method& method, int tokens) {
  if (!method.needs_budget()) return 0;
  return method.least.call(tokens) + 1;
}

std::vector<int> spread_over_layers(const Method& method, int budget, int layers, int tokens) {
  const bool fits = tokens <= budget;
  // Where everything fits no budget is too small, unless the lanes will grow into it.
  if (method.needs_budget() && (!fits || method.schedule == Schedule::step)) check_budget(method, budget, tokens);
  if (fits || !method.over_layers) return std::vector<int>(static_cast<std::size_t>(layers), budget);
  return method.over_layers.call(budget, layers, tokens, method.forced.call(tokens, budget));
}

cache::KeepPlan plan(const Method& method, const LayerView& view, int budget, int layer_budget) {
  cache::KeepPlan out;
  const int tokens = view.tokens();
  if (!method.needs_budget() || tokens <= budget) return out;
  const Forced forced = method.forced.call(tokens, budget);
  const Scores scores = method.score ? method.score.call(view, forced) : Scores(view.shape.kv_heads, tokens);
  const int selected = layer_budget - forced.total();
  const auto counts = method.over_heads ? method.over_heads.call(selected, scores, forced)
                                        : std::vector<int>(static_cast<std::size_t>(view.shape.kv_heads), selected);
  for (int head = 0; head < view.shape.kv_heads; ++head) {
    out.heads.push_back(keep(scores.head(head), tokens, counts[static_cast<std::size_t>(head)], forced));
  }
  return out;
}

}  // namespace winnow::policy
