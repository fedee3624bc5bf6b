// SPDX-License-Identifier: Apache-2.0
#include "policy/rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "attention/products.h"

namespace winnow::policy {

float uneven_magnitude(const Rope& rope, int head_dim) {
  const int rotated = rope.rotated_dims();
  return rotated == 0 || rotated == head_dim ? 1 : rope.magnitude;
}

void stretch(const Rope& rope, float by, std::span<float> key) {
  for (float& x : key.first(rope.rotated_dims())) x *= by;
}

double norm(std::span<const float> row) {
  return std::sqrt(std::inner_product(row.begin(), row.end(), row.begin(), 0.0));
}

void fetch(const LayerView& view, const cache::KeepPlan& plan, std::span<const std::vector<std::int32_t>> others) {
  auto rows = plan.heads;
  for (std::size_t head = 0; head < rows.size(); ++head) {
    const auto kept = static_cast<std::ptrdiff_t>(rows[head].size());
    rows[head].insert(rows[head].end(), others[head].begin(), others[head].end());
    std::inplace_merge(rows[head].begin(), rows[head].begin() + kept, rows[head].end());
  }
  view.scratch.fetch(rows);
}

void add_products_with_summaries(const cache::LayerLanes& lanes, int head, std::span<const float> vector,
                                 std::span<float> out) {
  const int blocks = static_cast<int>(out.size());
  for (int block = 0; block < blocks;) {
    const auto some = lanes.summaries().rows(head, block, blocks);
    attention::add_products(vector, some, out.subspan(block));
    block += some.count;
  }
}

void add_rows(Scores& scores, const attention::ColumnStatistics& more, const attention::Shape& shape,
              const Join& join) {
  const auto both = [&join](double a, double b) {
    if (join.reduction == attention::Reduction::sum) return a + b;
    return b > a || std::isnan(b) ? b : a;
  };
  for (int head = 0; head < scores.heads(); ++head) {
    const auto to = scores.head(head);
    for (std::size_t j = 0; j < to.size(); ++j) {
      double all = to[j];
      for (int g = 0; g < shape.group(); ++g) all = both(all, join.weight * more.head(head * shape.group() + g)[j]);
      to[j] = static_cast<float>(all);
    }
  }
}

void rank_by(Method& method, std::string text, int sinks,
             std::function<Scores(const LayerView&, const AlwaysKept&)> score) {
  method.selection.always_kept = {sinks == 0 ? "nothing" : "the first " + std::to_string(sinks) + " tokens",
                                  [sinks](const LayerPrompt& prompt, int) {
                                    return AlwaysKept{std::min(sinks, prompt.tokens), 0};
                                  }};
  method.selection.least = {method.selection.always_kept.text,
                            [sinks](const LayerPrompt& prompt) { return std::min(sinks, prompt.tokens); }};
  method.selection.score = {std::move(text), std::move(score)};
  method.schedule = Schedule::once;
}

}  // namespace winnow::policy
