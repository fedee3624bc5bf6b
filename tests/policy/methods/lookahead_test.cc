// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "policy/fake_layer.h"
#include "winnow/budget_error.h"

namespace winnow::test {
namespace {

using namespace reference;

/// Attention of the group's last `window` rows of the prompt and of the `draft` rows after it.
std::vector<double> scores(const std::vector<Matrix>& group, int n, int draft, int window, const std::string& rows) {
  std::vector<double> out(z(n - window));
  for (const auto& a : group) {
    for (int i = n - window; i < n + draft; ++i) {
      for (int j = 0; j < n - window; ++j) out[j] = rows == "sum" ? out[j] + a[i][j] : std::max(out[j], a[i][j]);
    }
  }
  return out;
}

TEST(Lookahead, keeps_what_the_reference_keeps) {
  constexpr int kTokens = 80;
  for (const auto& [name, attention] : attentions()) {
    for (const auto& [kv_heads, group] : {std::pair{1, 1}, {2, 3}, {1, 7}}) {
      const FakeLayer layer(kv_heads, group, kTokens, attention);
      for (const auto& [draft, window, kernel, pool, rows] : {std::tuple{8, 8, 7, "max", "sum"},
                                                              {3, 5, 5, "mean", "sum"},
                                                              {16, 1, 1, "max", "max"},
                                                              {8, 8, 3, "mean", "max"}}) {
        const auto spec = "lookahead(snapkv:window=8):draft=" + std::to_string(draft) +
                          ",window=" + std::to_string(window) + ",kernel=" + std::to_string(kernel) + ",pool=" + pool +
                          ",rows=" + rows;
        for (const int budget : {9, 33, 79, 80}) {
          const auto plan = layer.plan(spec, budget);
          for (int head = 0; head < kv_heads; ++head) {
            const auto score = scores(layer.group(head, draft), kTokens, draft, window, rows);
            const auto order = ranking(pooled(score, kernel, pool, "valid"));
            std::vector<std::int32_t> want(order.begin(), order.begin() + std::min(budget, kTokens) - window);
            for (int j = kTokens - window; j < kTokens; ++j) want.push_back(j);
            EXPECT_EQ(kept(plan, head, kTokens), sorted(want)) << name << " " << spec << " budget " << budget;
          }
        }
      }
    }
  }
}

TEST(Lookahead, its_drafter_has_the_options_that_were_given) {
  const auto spec = Spec::parse("ada(lookahead(chunk(snapkv:window=9)):draft=5)");
  const auto& draft = spec.method().draft;
  ASSERT_TRUE(draft);
  EXPECT_EQ(draft->tokens, 5);
  EXPECT_FALSE(draft->drafter->draft);
  EXPECT_TRUE(draft->drafter->selection.select);
  EXPECT_EQ(draft->drafter->selection.least.call({100, 3}), 9);
  EXPECT_EQ(spec.drafter().print(), "chunk(snapkv)");
  EXPECT_FALSE(spec.method().selection.select);
  EXPECT_TRUE(spec.method().selection.over_heads);
  EXPECT_EQ(Spec::parse(spec.print()), spec);
}

/// A budget that is too small for the drafter is refused.
TEST(Lookahead, needs_what_its_drafter_needs) {
  const FakeLayer layer(1, 3, 90, random_attention(3));
  EXPECT_EQ(layer.plan("lookahead(snapkv)", 33).heads[0].size(), 33U);
  EXPECT_THROW(layer.plan("lookahead(snapkv)", 32), BudgetError);
  EXPECT_EQ(layer.plan("lookahead(full)", 9).heads[0].size(), 9U);
  EXPECT_THROW(layer.plan("lookahead(full)", 8), BudgetError);
}

TEST(Lookahead, has_the_positions_of_its_drafter) {
  const auto positions = [](const char* spec) { return Spec::parse(spec).method().positions; };
  EXPECT_EQ(positions("lookahead(snapkv:positions=cache)"), policy::Positions::cache);
  EXPECT_EQ(positions("lookahead(snapkv)"), policy::Positions::absolute);
  EXPECT_EQ(positions("lookahead(ems)"), policy::Positions::absolute);
}

}  // namespace
}  // namespace winnow::test
