// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <numeric>

#include "policy/fake_layer.h"
#include "winnow/error.h"

namespace winnow::test {
namespace {

using namespace reference;

constexpr int kTokens = 90;
constexpr int kWindow = 8;
constexpr const char* kInner = "snapkv:window=8,kernel=3,pool=mean";

/// L1 norm of each value after the output projection, averaged over the group.
std::vector<double> lengths(const FakeLayer& layer, int kv_head) {
  const int group = layer.shape().group();
  std::vector<double> out(z(layer.tokens()));
  for (int j = 0; j < layer.tokens(); ++j) {
    const auto row = layer.token(j);
    const auto value = row.begin() + (layer.shape().kv_heads + kv_head) * FakeLayer::kDim;
    for (int h = kv_head * group; h < (kv_head + 1) * group; ++h) {
      for (int output = 0; output < FakeLayer::kOutputs; ++output) {
        double made = 0;
        for (int i = 0; i < FakeLayer::kDim; ++i) made += FakeLayer::output_weight(h, i, output) * value[i];
        out[j] += std::abs(made) / group;
      }
    }
  }
  return out;
}

std::vector<double> scores(const FakeLayer& layer, int kv_head) {
  const int n = layer.tokens();
  std::vector<std::vector<double>> sums;
  for (const auto& a : layer.group(kv_head)) sums.push_back(column_sums(a, n - kWindow, n, n - kWindow));
  return pooled(combined(sums, "mean"), 3, "mean", "valid");
}

/// Selects `count` entries before the window, and the window. The places of the first stage include the window.
std::vector<std::int32_t> critical(const FakeLayer& layer, int kv_head, int count, double share, double epsilon) {
  const auto score = scores(layer, kv_head);
  const auto length = lengths(layer, kv_head);
  const int first = std::max(0, static_cast<int>(std::floor(share * (count + kWindow))) - kWindow);
  auto order = ranking(score);
  std::vector<std::int32_t> kept(order.begin(), order.begin() + std::min(first, count));
  std::vector<double> weighted;
  for (std::size_t j = 0; j < score.size(); ++j) weighted.push_back((score[j] + epsilon) * length[j]);
  for (const auto j : ranking(weighted)) {
    const bool is_new = std::find(kept.begin(), kept.end(), j) == kept.end();
    if (is_new && static_cast<int>(kept.size()) < count) kept.push_back(j);
  }
  for (int j = layer.tokens() - kWindow; j < layer.tokens(); ++j) kept.push_back(j);
  return sorted(kept);
}

std::string spec_of(double share, double epsilon, const std::string& inner = kInner) {
  return "critical(" + inner + "):share=" + std::to_string(share) + ",epsilon=" + std::to_string(epsilon);
}

TEST(Critical, keeps_what_the_reference_keeps) {
  for (const auto& [name, attention] : attentions()) {
    for (const auto& [kv_heads, group] : {std::pair{1, 1}, {2, 3}, {1, 7}}) {
      const FakeLayer layer(kv_heads, group, kTokens, attention);
      for (const auto& [share, epsilon] : {std::pair{0.5, 1e-4}, {0.0, 1e-4}, {0.25, 0.01}, {0.9, 0.5}}) {
        for (const int budget : {9, 12, 20, 45, 89}) {
          const auto plan = layer.plan(spec_of(share, epsilon), budget);
          for (int head = 0; head < kv_heads; ++head) {
            EXPECT_EQ(plan.heads[head], critical(layer, head, budget - kWindow, share, epsilon))
                << name << " share " << share << " budget " << budget;
          }
        }
      }
    }
  }
}

TEST(Critical, with_all_of_the_budget_in_the_first_stage_it_changes_nothing) {
  const FakeLayer layer(2, 3, kTokens, random_attention(3));
  for (const char* inner : {"snapkv:window=8", "h2o", "expected-attention", "kvzip", "nacl", "random", "lagkv"}) {
    for (const int budget : {30, 60}) {
      const auto name = std::string(inner);
      EXPECT_EQ(layer.plan("critical(" + name + "):share=1", budget).heads, layer.plan(name, budget).heads) << inner;
      EXPECT_NE(layer.plan("critical(" + name + "):share=0", budget).heads, layer.plan(name, budget).heads) << inner;
    }
  }
}

/// The authors' CriticalAdaKV: X's scores give each head its number of entries, and each head selects them in two
/// stages.
TEST(Critical, heads_share_a_budget_by_the_scores_alone_in_either_order) {
  const FakeLayer layer(
      3, 2, kTokens, [random = random_attention(7)](int h, int i, int j) { return random(h, i, j) * (h / 2 + 1) / 3; });
  for (const char* floor : {":floor=0", ":floor=0.2", ":floor=0.4,floor-rule=hard"}) {
    for (const int budget : {12, 30, 60}) {
      const auto shared = layer.plan("ada(" + std::string(kInner) + ")" + floor, budget);
      const auto inside = layer.plan("ada(critical(" + std::string(kInner) + "))" + floor, budget);
      const auto outside = layer.plan("critical(ada(" + std::string(kInner) + ")" + floor + ")", budget);
      EXPECT_EQ(inside.heads, outside.heads);
      for (int head = 0; head < 3; ++head) {
        const int count = static_cast<int>(shared.heads[head].size()) - kWindow;
        EXPECT_EQ(inside.heads[head], critical(layer, head, count, 0.5, 1e-4)) << floor << " budget " << budget;
      }
      EXPECT_NE(inside.heads[0].size(), inside.heads[2].size());
    }
  }
}

TEST(Critical, refuses_what_does_not_rank_single_entries_by_scores_that_can_be_multiplied) {
  const auto message = [](const std::string& spec) {
    try {
      Spec::parse(spec);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(message("critical(knorm)"),
            "critical(knorm) is not possible: its scores may be negative, so they cannot be multiplied by lengths");
  EXPECT_EQ(message("critical(tova)"), "critical(tova) is not possible: it keeps one set for all heads of a layer");
  EXPECT_EQ(message("critical(sage-kv)"),
            "critical(sage-kv) is not possible: it does not select entries by scores alone");
  EXPECT_EQ(message("critical(critical(snapkv))"),
            "critical(critical(snapkv)) is not possible: it selects entries in two steps, by scores and by values");
  EXPECT_EQ(message("chunk(critical(snapkv))"),
            "chunk(critical(snapkv)) is not possible: it selects entries in two steps, by scores and by values");
  for (const char* spec : {"critical(keydiff)", "critical(streaming-llm)", "critical(full)", "critical(quest)",
                           "critical(cam)", "critical(chunk(snapkv))", "critical(snapkv):share=1.5"})
    EXPECT_THROW(Spec::parse(spec), UsageError) << spec;
}

}  // namespace
}  // namespace winnow::test
