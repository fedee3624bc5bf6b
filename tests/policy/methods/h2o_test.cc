// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "policy/fake_layer.h"

namespace winnow::test {
namespace {

using namespace reference;

/// One KV head: `heavy` entries are kept by received attention, and the last tokens fill the rest of the budget. Evicts
/// when the prompt ends and after each token.
struct Reference {
  Reference(const std::vector<Matrix>& group, int prompt, int budget, bool count, int sinks)
      : group_(group), budget_(budget), recent_((budget - sinks) / 2), count_(count), sinks_(sinks), last_(prompt - 1) {
    std::vector<std::vector<double>> sums;
    for (const auto& a : group) sums.push_back(column_sums(a, 0, prompt, prompt));
    received_ = combined(sums, "mean");
    kept_ = all_of(prompt);
    evict();
  }
  void step() {
    ++last_;
    kept_.push_back(last_);
    received_.push_back(0);
    for (const auto j : kept_) {
      double sum = 0;
      for (const auto& a : group_) sum += a[last_][j];
      received_[j] += sum / static_cast<double>(group_.size());
    }
    evict();
  }
  void evict() {
    while (static_cast<int>(kept_.size()) > budget_) {
      std::size_t least = kept_.size();
      for (std::size_t i = 0; i < kept_.size(); ++i) {
        if (kept_[i] < sinks_ || kept_[i] > last_ - recent_) continue;
        if (least == kept_.size() || worth(kept_[i]) < worth(kept_[least]))
          least = i;  // of equal entries, the earlier one is evicted
      }
      kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(least));
    }
  }
  double worth(std::int32_t j) const { return count_ ? received_[j] / (last_ - j + 1) : received_[j]; }

  std::vector<Matrix> group_;
  int budget_;
  int recent_;
  bool count_;
  int sinks_;
  std::int32_t last_;
  std::vector<double> received_;
  std::vector<std::int32_t> kept_;
};

TEST(H2o, keeps_what_the_reference_keeps_for_200_steps) {
  constexpr int kTokens = 60;
  constexpr int kSteps = 200;
  for (const auto& [name, attention] : attentions()) {
    for (const auto& [kv_heads, group] : {std::pair{1, 1}, {2, 2}, {1, 4}}) {
      FakeLayer layer(kv_heads, group, kTokens, attention);
      for (const int budget : {1, 2, 7, 30, 59, 60, 61, 100}) {
        for (int head = 0; head < kv_heads; ++head) {
          FakeDecode own(layer, "h2o", budget);
          Reference expected(layer.group(head, kSteps), kTokens, budget, false, 0);
          ASSERT_EQ(own.kept(head), expected.kept_) << name << " budget " << budget;
          for (int i = 0; i < kSteps; ++i) {
            own.step();
            expected.step();
            ASSERT_EQ(own.kept(head), expected.kept_) << name << " budget " << budget << " step " << i;
            ASSERT_LE(own.lanes().length(head), budget);
          }
        }
      }
    }
  }
}

TEST(H2o, divides_by_the_number_of_queries_and_keeps_sinks) {
  FakeLayer layer(1, 1, 50, random_attention(3));
  for (const int budget : {5, 6, 21, 49}) {
    FakeDecode own(layer, "h2o:normalize=count,sinks=4", budget);
    Reference expected(layer.group(0, 60), 50, budget, true, 4);
    for (int i = 0; i < 60; ++i) {
      ASSERT_EQ(own.kept(0), expected.kept_) << budget << " " << i;
      own.step();
      expected.step();
    }
  }
}

TEST(H2o, shares_the_budget_by_weight) {
  FakeLayer layer(1, 1, 50, [](int, int, int j) { return j < 25 ? 0.5 : 0.0; });  // more queries see an early token
  const auto plan = layer.plan("h2o:heavy=3,recent=1,when=prefill", 12);
  EXPECT_EQ(plan.heads[0], (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 47, 48, 49}));
  EXPECT_TRUE(plan.state.empty());
}

}  // namespace
}  // namespace winnow::test
