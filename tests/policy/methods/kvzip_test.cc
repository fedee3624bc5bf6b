// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "policy/fake_layer.h"
#include "policy/replay_of.h"

namespace winnow::test {
namespace {

using namespace reference;

/// The largest attention of the group from the rows that repeat an entry's chunk. In the fake layer these rows follow
/// the prompt.
std::vector<double> scores(const FakeLayer& layer, int kv_head, int chunk) {
  std::vector<double> out(z(layer.tokens()));
  const auto group = layer.group(kv_head, chunk);
  for (int j = 0; j < layer.tokens(); ++j) {
    const int rows = std::min(chunk, layer.tokens() - j / chunk * chunk);
    for (const auto& a : group) {
      for (int i = 0; i < rows; ++i) out[j] = std::max(out[j], a[layer.tokens() + i][j]);
    }
  }
  return out;
}

TEST(KVzip, keeps_what_the_reference_keeps) {
  for (const auto& [name, attention] : attentions()) {
    for (const auto& [kv_heads, group] : {std::pair{1, 1}, {2, 3}, {1, 7}}) {
      FakeLayer layer(kv_heads, group, 60, attention);
      for (const int chunk : {7, 20, 2048}) {
        std::vector<std::vector<double>> of_heads;
        for (int head = 0; head < kv_heads; ++head) of_heads.push_back(scores(layer, head, chunk));
        for (const int sinks : {0, 4}) {
          for (const int budget : {5, 20, 59}) {
            const auto plan =
                layer.plan("kvzip:chunk=" + std::to_string(chunk) + ",sinks=" + std::to_string(sinks), budget);
            for (int head = 0; head < kv_heads; ++head) {
              const auto& score = of_heads[z(head)];
              const auto order = ranking({score.begin() + sinks, score.end()}, sinks);
              auto want = all_of(sinks);
              want.insert(want.end(), order.begin(), order.begin() + (budget - sinks));
              EXPECT_EQ(plan.heads[head], sorted(want)) << name << " chunk " << chunk << " budget " << budget;
            }
          }
        }
      }
    }
  }
}

/// KVzip+: the maximum of a_ij |W_o^(h) v_j| / |h_i| over the rows and the group.
std::vector<double> plus_scores(const FakeLayer& layer, int kv_head, int chunk) {
  std::vector<double> out(z(layer.tokens()));
  const int group = layer.shape().group();
  const auto attention = layer.group(kv_head, chunk);
  for (int j = 0; j < layer.tokens(); ++j) {
    const auto row = layer.token(j);
    const auto value = row.begin() + (layer.shape().kv_heads + kv_head) * FakeLayer::kDim;
    const int rows = std::min(chunk, layer.tokens() - j / chunk * chunk);
    for (int g = 0; g < group; ++g) {
      double squares = 0;
      for (int output = 0; output < FakeLayer::kOutputs; ++output) {
        double made = 0;
        for (int i = 0; i < FakeLayer::kDim; ++i)
          made += FakeLayer::output_weight(kv_head * group + g, i, output) * value[i];
        squares += made * made;
      }
      for (int i = layer.tokens(); i < layer.tokens() + rows; ++i)
        out[j] = std::max(out[j], attention[g][i][j] * std::sqrt(squares) / FakeLayer::input_length(i));
    }
  }
  return out;
}

TEST(KVzipPlus, keeps_what_the_reference_keeps) {
  for (const auto& [kv_heads, group] : {std::pair{1, 1}, {2, 3}, {1, 7}}) {
    const FakeLayer layer(kv_heads, group, 60, random_attention(4));
    for (const int chunk : {7, 2048}) {
      for (const int budget : {5, 20, 59}) {
        const auto plan = layer.plan("kvzip:normalize=plus,chunk=" + std::to_string(chunk), budget);
        for (int head = 0; head < kv_heads; ++head) {
          const auto score = plus_scores(layer, head, chunk);
          const auto order = ranking({score.begin() + 4, score.end()}, 4);
          auto want = all_of(4);
          want.insert(want.end(), order.begin(), order.begin() + (budget - 4));
          EXPECT_EQ(plan.heads[head], sorted(want)) << "chunk " << chunk << " budget " << budget;
        }
      }
    }
  }
}

/// kvzip(X): the larger of X's score and the repetition's score times min(1, ((B / N) / even)^3). The last four tokens
/// are X's window.
TEST(KVzip, around_a_method_keeps_what_the_reference_keeps) {
  for (const auto& [name, attention] : attentions()) {
    for (const auto& [kv_heads, group] : {std::pair{1, 1}, {2, 3}}) {
      FakeLayer layer(kv_heads, group, 60, attention);
      for (const double even : {0.25, 0.5, 4.0}) {
        for (const int budget : {5, 20, 59}) {
          const auto plan = layer.plan(
              "kvzip(snapkv:window=4,rows=max,kernel=1,gqa=max):chunk=20,even=" + std::to_string(even), budget);
          const double share = budget / 60.0 / even;
          const double cube = share * share * share;
          const double weight = cube < 0.02 ? 0 : std::min(1.0, cube);
          for (int head = 0; head < kv_heads; ++head) {
            auto score = scores(layer, head, 20);
            score.resize(56);
            for (double& x : score) x = static_cast<float>(x * weight);  // as scores are held
            for (const auto& a : layer.group(head)) {
              for (int j = 0; j < 56; ++j) {
                for (int i = 56; i < 60; ++i) score[z(j)] = std::max(score[z(j)], a[z(i)][z(j)]);
              }
            }
            auto want = ranking(score);
            want.resize(z(budget - 4));
            want.insert(want.end(), {56, 57, 58, 59});
            EXPECT_EQ(kept(plan, head, 60), sorted(want)) << name << " even " << even << " budget " << budget;
          }
        }
      }
    }
  }
}

TEST(KVzip, around_a_method_repeats_what_the_budget_can_hold) {
  const auto method = Spec::parse("kvzip(snapkv)").method();
  EXPECT_TRUE(replay_of(method, 1000, 3, 76).passages.empty());  // (0.076 / 0.28)^3 is just below 0.02
  EXPECT_EQ(replay_of(method, 1000, 3, 77).passages.size(), 1U);
}

TEST(KVzip, every_token_is_repeated_once_after_those_before_it) {
  const auto method = Spec::parse("kvzip:chunk=50").method();
  for (const int tokens : {1, 8, 50, 51, 150, 153}) {
    int next = 0;
    for (const auto& passage : replay_of(method, tokens, 3, 1).passages) {
      EXPECT_EQ(passage.first, next);
      EXPECT_EQ(passage.cue, std::min(8, next));
      EXPECT_LE(passage.count, 50);
      EXPECT_EQ(passage.recorded, (attention::KeyRange{next, next + passage.count}));
      next += passage.count;
    }
    EXPECT_EQ(next, tokens);
  }
}

}  // namespace
}  // namespace winnow::test
