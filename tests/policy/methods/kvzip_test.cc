// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

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

constexpr const char* kInner = "snapkv:window=4,rows=max,kernel=1,gqa=max";
constexpr int kTokens = 60;
constexpr int kChunk = 20;

/// Attention that is random in the prompt. In odd query heads, the rows after it copy the tokens of each chunk.
double copying(int h, int i, int j) {
  const int row = i - kTokens;
  const bool copies = row >= 0 && j < kTokens && (j % kChunk == row || j % kChunk == row + 1);
  return h % 2 == 1 && copies ? 0.1 + 0.004 * j : random_attention(3)(h, i, j);
}

/// Attention that each entry gets from the row that repeats it and from the row before that one.
std::vector<double> copied(const reference::Matrix& a) {
  std::vector<double> out(z(kTokens));
  for (int j = 0; j < kTokens; ++j) {
    const int row = kTokens + j % kChunk;
    out[z(j)] = a[z(row)][z(j)];
    if (j % kChunk > 0) out[z(j)] = std::max(out[z(j)], a[z(row - 1)][z(j)]);
  }
  return out;
}

/// The largest of the group.
std::vector<double> copied(const FakeLayer& layer, int kv_head) {
  std::vector<double> out(z(kTokens));
  for (const auto& a : layer.group(kv_head, kChunk)) {
    const auto of_head = copied(a);
    for (int j = 0; j < kTokens; ++j) out[z(j)] = std::max(out[z(j)], of_head[z(j)]);
  }
  return out;
}

struct Counting {
  double even;
  double demand;
  double sharp;
};

/// min(1, (B / max(even · N, demand · mean sum of a head's scores))^3), or 0 if it is below 0.02 or no head's scores
/// are `sharp` on average.
double weight(const std::vector<std::vector<double>>& repeated, int budget, const Counting& by) {
  double all = 0;
  double most = 0;
  for (const auto& head : repeated) {
    const double sum = std::accumulate(head.begin(), head.end(), 0.0);
    all += sum / static_cast<double>(repeated.size());
    most = std::max(most, sum);
  }
  const double cube = std::pow(budget / std::max(by.even * kTokens, by.demand * all), 3);
  return cube < 0.02 || most / kTokens < by.sharp * 400 / kTokens ? 0 : std::min(1.0, cube);
}

/// kvzip(X): the larger of X's score and the repetition's score times the weight. The last four tokens are X's window.
TEST(KVzip, around_a_method_keeps_what_the_reference_keeps) {
  auto all = attentions();
  all.emplace_back("copying", copying);
  for (const auto& [name, attention] : all) {
    for (const auto& [kv_heads, group] : {std::pair{1, 1}, {2, 3}}) {
      FakeLayer layer(kv_heads, group, kTokens, attention);
      std::vector<std::vector<double>> repeated;
      for (int head = 0; head < kv_heads; ++head) repeated.push_back(copied(layer, head));
      for (const Counting& by : {Counting{0.28, 5, 0.01}, {0.28, 1.5, 0.01}, {0.5, 0, 0}, {4, 0, 0}, {0.01, 40, 0}}) {
        for (const int budget : {5, 20, 59}) {
          const auto plan = layer.plan(fmt::format("kvzip({}):chunk={},even={},demand={},sharp={}", kInner, kChunk,
                                                   by.even, by.demand, by.sharp),
                                       budget);
          for (int head = 0; head < kv_heads; ++head) {
            std::vector<double> score;
            for (int j = 0; j < kTokens - 4; ++j) {
              score.push_back(static_cast<float>(weight(repeated, budget, by) * repeated[z(head)][z(j)]));  // as held
              for (const auto& a : layer.group(head)) {
                for (int i = kTokens - 4; i < kTokens; ++i) score.back() = std::max(score.back(), a[z(i)][z(j)]);
              }
            }
            auto want = ranking(score);
            want.resize(z(budget - 4));
            want.insert(want.end(), {56, 57, 58, 59});
            EXPECT_EQ(kept(plan, head, kTokens), sorted(want))
                << name << " even " << by.even << " demand " << by.demand << " budget " << budget;
          }
        }
      }
    }
  }
}

/// A sum of 3 over two heads: each has a demand of 1.5 entries.
TEST(KVzip, counts_as_far_as_the_budget_holds_what_it_attends_to) {
  const auto method = Spec::parse("kvzip(snapkv):even=0.001,demand=2,sharp=0.001").method();
  policy::ScoreParts parts{{2, 4}, {2, 4}};
  const std::vector<float> repeated = {1, 0.5, 0, 0, 0.5, 0.5, 0.5, 0};
  std::ranges::copy(repeated, parts.second.all().begin());
  parts.scores.head(0)[0] = 0.1F;
  const auto first_head = [&](int budget) {
    auto scores = policy::joined(method, parts, budget);
    return std::vector<float>(scores.head(0).begin(), scores.head(0).end());
  };
  EXPECT_EQ(first_head(3), (std::vector<float>{1, 0.5, 0, 0})) << "2 * 1.5 entries: the weight is 1";
  EXPECT_EQ(first_head(4), first_head(3)) << "and no more";
  EXPECT_EQ(first_head(2), (std::vector<float>{static_cast<float>(8.0 / 27), static_cast<float>(4.0 / 27), 0, 0}));
  EXPECT_EQ(first_head(1), (std::vector<float>{0.1F, static_cast<float>(0.5 / 27), 0, 0}));
  EXPECT_EQ(first_head(0), (std::vector<float>{0.1F, 0, 0, 0}));
}

TEST(KVzip, around_a_method_changes_nothing_if_no_head_repeats) {
  for (const auto& [name, attention] : attentions()) {
    for (const auto& [kv_heads, group] : {std::pair{1, 1}, {2, 3}}) {
      const FakeLayer layer(kv_heads, group, kTokens, attention);
      for (const int budget : {5, 20, 40, 59})
        EXPECT_EQ(layer.plan(fmt::format("kvzip({}):chunk={},even=0.001,demand=0", kInner, kChunk), budget).heads,
                  layer.plan(kInner, budget).heads)
            << name;
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
