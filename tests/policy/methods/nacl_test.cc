// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "policy/fake_layer.h"

namespace winnow::test {
namespace {

using namespace reference;

/// Entries that are certain to stay: sinks, last tokens, and the best 12/19 (rounded by the larger fraction) of the
/// rest.
std::vector<std::int32_t> certain(const std::vector<Matrix>& group, int budget) {
  const int n = static_cast<int>(group.front().size());
  const int sinks = std::min(256, budget / 4);
  const int proxies = std::max(1, n / 100);
  const int recent = std::min(proxies, (budget - sinks) / 4);
  std::vector<std::vector<double>> sums;
  for (const auto& a : group) sums.push_back(column_sums(a, n - proxies, n, n));
  const auto all = combined(sums, "mean");
  const auto order = ranking({all.begin() + sinks, all.end() - recent}, sinks);
  const int rest = budget - sinks - recent;
  const int ranked = rest * 12 / 19 + (rest * 12 % 19 > rest * 7 % 19 ? 1 : 0);
  std::vector<std::int32_t> out(order.begin(), order.begin() + ranked);
  for (int j = 0; j < sinks; ++j) out.push_back(j);
  for (int j = n - recent; j < n; ++j) out.push_back(j);
  return sorted(out);
}

TEST(Nacl, keeps_the_budget_and_what_the_reference_is_certain_of) {
  for (const auto& [name, attention] : attentions()) {
    for (const auto& [kv_heads, group, tokens] : {std::tuple{1, 1, 90}, {2, 3, 90}, {1, 7, 450}}) {
      FakeLayer layer(kv_heads, group, tokens, attention);
      for (const int budget : {1, 2, 4, 20, 63, 89}) {
        const auto plan = layer.plan("nacl", budget);
        for (int head = 0; head < kv_heads; ++head) {
          const auto got = kept(plan, head, tokens);
          const auto must = certain(layer.group(head), budget);
          EXPECT_EQ(static_cast<int>(got.size()), budget);
          EXPECT_TRUE(std::includes(got.begin(), got.end(), must.begin(), must.end())) << name << " budget " << budget;
        }
      }
    }
  }
}

TEST(Nacl, draws_by_seed_head_and_layer) {
  FakeLayer layer(2, 1, 90, [](int, int, int) { return 0.01; });
  const auto plan = [&](const char* spec, int l) { return layer.plan(Spec::parse(spec), 40, l, 2).heads; };
  EXPECT_EQ(plan("nacl", 0), plan("nacl", 0));
  EXPECT_NE(plan("nacl", 0), plan("nacl", 1));
  EXPECT_NE(plan("nacl", 0), plan("nacl:seed=1", 0));
  EXPECT_NE(plan("nacl", 0)[0], plan("nacl", 0)[1]);
}

/// With 4 of 6 tokens: the sink, the best two by rank, and one of the other three, drawn in proportion to e^score.
TEST(Nacl, draws_in_proportion_to_the_softmax) {
  const std::vector<double> score = {0, 8, 8, 2, 1, 0};
  FakeLayer layer(1, 1, 6, [&](int, int, int j) { return score[j]; });
  std::map<int, int> times;
  constexpr int kSeeds = 4000;
  for (int seed = 0; seed < kSeeds; ++seed) {
    const auto kept = layer.plan("nacl:seed=" + std::to_string(seed), 4).heads[0];
    ASSERT_EQ((std::vector<std::int32_t>{kept[0], kept[1], kept[2]}), (std::vector<std::int32_t>{0, 1, 2}));
    ++times[kept[3]];
  }
  const double total = std::exp(2) + std::exp(1) + 1;
  for (const int j : {3, 4, 5}) {
    const double p = std::exp(score[j]) / total;
    EXPECT_NEAR(times[j], kSeeds * p, 4 * std::sqrt(kSeeds * p * (1 - p)))
        << j;  // four standard deviations of the binomial
  }
}

}  // namespace
}  // namespace winnow::test
