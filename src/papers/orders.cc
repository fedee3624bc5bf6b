// SPDX-License-Identifier: Apache-2.0
#include "papers/orders.h"

#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <map>
#include <tuple>

namespace winnow::papers {

namespace {

/// Differences of cells, cached, since several of the paper's models may need the same pair.
class Differences {
 public:
  Differences(const Recipe& recipe, const Cells& cells) : recipe_(recipe), cells_(cells) {}

  const std::optional<Difference>& of(std::size_t more, std::size_t less, std::size_t column) {
    const auto [place, is_new] = known_.try_emplace({more, less, column});
    const auto& a = cells_[more][column];
    const auto& b = cells_[less][column];
    if (is_new && a && b) place->second = scaled(difference(*a, *b), recipe_.columns[column].unit);
    return place->second;
  }

 private:
  static std::optional<Difference> scaled(const std::optional<Difference>& difference, double unit) {
    if (!difference) return difference;
    return Difference{difference->mean.times(unit), difference->samples, difference->same};
  }

  const Recipe& recipe_;
  const Cells& cells_;
  std::map<std::tuple<std::size_t, std::size_t, std::size_t>, std::optional<Difference>> known_;
};

bool are_ordered(const Line& a, const Line& b) { return a.group.empty() || b.group.empty() || a.group == b.group; }

void add_pairs(const Recipe& recipe, const Figures& figures, std::size_t column, Differences& differences,
               std::vector<Compared>& to) {
  for (std::size_t a = 0; a < recipe.rows.size(); ++a) {
    for (std::size_t b = a + 1; b < recipe.rows.size(); ++b) {
      const auto& of_a = figures.values[a][column];
      const auto& of_b = figures.values[b][column];
      if (!of_a || !of_b || *of_a == *of_b || !are_ordered(recipe.rows[a], recipe.rows[b])) continue;
      const auto more = *of_a > *of_b ? a : b;
      const auto less = more == a ? b : a;
      const auto& ours = differences.of(more, less, column);
      to.push_back({figures.model, more, less, column, std::abs(*of_a - *of_b), ours, judged(ours)});
    }
  }
}

}  // namespace

const char* name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::agrees:
      return "agrees";
    case Verdict::disagrees:
      return "disagrees";
    case Verdict::cannot_be_told:
      return "cannot be told";
    case Verdict::few_samples:
      return "too few samples";
    case Verdict::nothing_evicted:
      return "nothing evicted";
    case Verdict::not_measured:
      return "not measured";
  }
  return "";
}

Verdict judged(const std::optional<Difference>& more_minus_less) {
  if (!more_minus_less) return Verdict::not_measured;
  if (more_minus_less->same == more_minus_less->samples) return Verdict::nothing_evicted;
  const auto& mean = more_minus_less->mean;
  if (more_minus_less->samples < kLeastSamples || !mean.has_interval()) return Verdict::few_samples;
  if (mean.low <= 0 && mean.high >= 0) return Verdict::cannot_be_told;
  return mean.low > 0 ? Verdict::agrees : Verdict::disagrees;
}

std::string name_of_claim(std::size_t index) { return fmt::format("claim {}", index + 1); }

std::vector<Compared> compared(const Recipe& recipe, const Cells& cells) {
  Differences differences(recipe, cells);
  std::vector<Compared> out;
  for (const auto& figures : recipe.figures) {
    for (std::size_t column = 0; column < recipe.columns.size(); ++column)
      add_pairs(recipe, figures, column, differences, out);
  }
  for (std::size_t i = 0; i < recipe.claims.size(); ++i) {
    for (const auto& order : recipe.claims[i].orders) {
      for (const auto column : order.columns) {
        const auto& ours = differences.of(order.more, order.less, column);
        out.push_back({name_of_claim(i), order.more, order.less, column, {}, ours, judged(ours)});
      }
    }
  }
  return out;
}

}  // namespace winnow::papers
