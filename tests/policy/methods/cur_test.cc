// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "policy/fake_layer.h"

namespace winnow::test {
namespace {

using namespace reference;

struct Settings {
  int local = 16;
  std::string by = "product";
  int sinks = 4;
};

std::string spec_of(const Settings& s) {
  return "cur:local=" + std::to_string(s.local) + ",by=" + s.by + ",sinks=" + std::to_string(s.sinks);
}

/// Squared length of each key (part 0) or value (part 1), divided by the sum over its stretch.
std::vector<double> shares(const FakeLayer& layer, int head, int part, int local) {
  std::vector<double> squares;
  for (int j = 0; j < layer.tokens(); ++j) {
    const auto row = layer.token(j);
    double sum = 0;
    for (int c = 0; c < FakeLayer::kDim; ++c)
      sum += std::pow(row[z((part * layer.shape().kv_heads + head) * FakeLayer::kDim + c)], 2.0);
    squares.push_back(sum);
  }
  if (local == 0) return squares;
  std::vector<double> out;
  for (int j = 0; j < layer.tokens(); ++j) {
    double sum = 0;
    for (int i = j / local * local; i < std::min(j / local * local + local, layer.tokens()); ++i) sum += squares[z(i)];
    out.push_back(squares[z(j)] / sum);
  }
  return out;
}

/// kvpress's CURPress, whose first tokens have the highest score.
std::vector<double> cur(const FakeLayer& layer, int head, const Settings& s) {
  const auto keys = shares(layer, head, 0, s.local);
  const auto values = shares(layer, head, 1, s.local);
  std::vector<double> score;
  for (int j = 0; j < layer.tokens(); ++j) {
    const double key = keys[z(j)];
    const double value = values[z(j)];
    if (s.by == "product") score.push_back(key * value);
    if (s.by == "mean") score.push_back((key + value) / 2);
    if (s.by == "keys") score.push_back(key);
    if (s.by == "values") score.push_back(value);
  }
  const double sum = std::accumulate(score.begin(), score.end(), 0.0);
  for (double& x : score) x /= sum;
  return score;
}

std::vector<std::int32_t> kept_by_reference(const FakeLayer& layer, int head, int budget, const Settings& s) {
  const auto score = cur(layer, head, s);
  auto out = all_of(s.sinks);
  const auto order = ranking({score.begin() + s.sinks, score.end()}, s.sinks);
  out.insert(out.end(), order.begin(), order.begin() + (budget - s.sinks));
  return sorted(out);
}

TEST(Cur, keeps_what_the_reference_keeps) {
  for (const auto& [kv_heads, group] : {std::pair{1, 1}, {2, 3}}) {
    const FakeLayer layer(kv_heads, group, 103, random_attention(1));  // the last stretch is shorter
    for (const auto& settings : {Settings{}, Settings{16, "mean", 4}, Settings{16, "keys", 0}, Settings{5, "values", 9},
                                 Settings{0, "product", 4}, Settings{0, "mean", 4}, Settings{1000, "product", 4}}) {
      for (const int budget : {settings.sinks + 1, 30, 102}) {
        const auto plan = layer.plan(spec_of(settings), budget);
        for (int head = 0; head < kv_heads; ++head) {
          EXPECT_EQ(plan.heads[z(head)], kept_by_reference(layer, head, budget, settings))
              << spec_of(settings) << " " << budget;
        }
      }
    }
  }
}

/// A head's scores add up to 1, so a head does not get more entries because its keys are longer.
TEST(Cur, heads_that_share_a_budget_compare_shares) {
  const FakeLayer layer(2, 1, 60, random_attention(1));
  const auto plan = layer.plan("ada(cur:sinks=0):floor=0", 20);
  std::vector<double> both = cur(layer, 0, {16, "product", 0});
  const auto second = cur(layer, 1, {16, "product", 0});
  both.insert(both.end(), second.begin(), second.end());
  std::vector<std::vector<std::int32_t>> best(2);
  const auto order = ranking(both);
  for (auto place = order.begin(); place != order.begin() + 40; ++place) best[z(*place / 60)].push_back(*place % 60);
  for (int head = 0; head < 2; ++head) EXPECT_EQ(plan.heads[z(head)], sorted(best[z(head)])) << head;
}

}  // namespace
}  // namespace winnow::test
