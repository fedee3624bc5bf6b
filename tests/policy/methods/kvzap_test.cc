// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "policy/fake_layer.h"
#include "winnow/error.h"

namespace winnow::test {
namespace {

using namespace reference;

/// The best predicted entries between the first and the last tokens; of equal ones the later.
std::vector<std::int32_t> best_of(const FakeLayer& layer, int head, int budget, int sinks, int recent) {
  std::vector<double> score;
  for (int j = sinks; j < layer.tokens() - recent; ++j) score.push_back(layer.predicted(head, j));
  const auto order = ranking(score, sinks);
  std::vector<std::int32_t> out(order.begin(), order.begin() + (budget - sinks - recent));
  for (int j = 0; j < sinks; ++j) out.push_back(j);
  for (int j = layer.tokens() - recent; j < layer.tokens(); ++j) out.push_back(j);
  return sorted(out);
}

std::string spec(int sinks, int recent) {
  return "kvzap:sinks=" + std::to_string(sinks) + ",recent=" + std::to_string(recent);
}

TEST(KVzap, keeps_what_the_reference_keeps) {
  for (const auto& [kv_heads, group] : {std::pair{1, 1}, {2, 3}, {1, 7}}) {
    FakeLayer layer(kv_heads, group, 60, random_attention(5));
    const auto usual = layer.predicted;
    for (const bool ties : {false, true}) {
      if (ties) layer.predicted = [](int head, int token) { return static_cast<float>(-((head + token) % 3)); };
      for (const auto& [budget, sinks, recent] :
           {std::tuple{5, 4, 0}, {20, 4, 8}, {20, 0, 0}, {40, 4, 18}, {59, 4, 20}, {59, 0, 29}}) {
        const auto plan = layer.plan(spec(sinks, recent), budget);
        for (int head = 0; head < kv_heads; ++head)
          EXPECT_EQ(plan.heads[z(head)], best_of(layer, head, budget, sinks, recent)) << budget << " " << ties;
      }
    }
  }
}

TEST(KVzap, the_last_tokens_take_half_of_a_small_budget) {
  const FakeLayer layer(2, 2, 60, random_attention(5));
  for (int head = 0; head < 2; ++head) {
    EXPECT_EQ(layer.plan("kvzap", 24).heads[z(head)], best_of(layer, head, 24, 4, 10));
    EXPECT_EQ(layer.plan("kvzap", 5).heads[z(head)], best_of(layer, head, 5, 4, 0));
  }
}

TEST(KVzap, heads_share_a_budget_by_what_is_predicted) {
  FakeLayer layer(2, 1, 60, random_attention(5));
  layer.predicted = [](int head, int token) { return static_cast<float>(head == 0 ? -token : -100 - token); };
  const auto plan = layer.plan("ada(kvzap:recent=0):floor=0", 20);
  EXPECT_EQ(plan.heads[0].size(), 36U) << "all of the first head's scores are higher";
  EXPECT_EQ(plan.heads[1].size(), 4U);
}

TEST(KVzap, cannot_be_multiplied_by_lengths) { EXPECT_THROW(Spec::parse("critical(kvzap)"), UsageError); }

}  // namespace
}  // namespace winnow::test
