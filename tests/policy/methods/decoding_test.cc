// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "policy/fake_layer.h"

namespace winnow::test {
namespace {

using namespace reference;

/// One KV head while decoding: with each token a score decays by `decay`, and becomes the largest attention of the
/// group if that is higher. `scores` are the prompt's, from 0 to 1, and `kept` its kept entries; then the entry with
/// the lowest score is evicted.
struct Reference {
  Reference(std::vector<Matrix> group, std::vector<double> scores, std::vector<std::int32_t> kept, int recent,
            double decay)
      : group_(std::move(group)), scores_(std::move(scores)), kept_(std::move(kept)), recent_(recent), decay_(decay) {}
  void step(int budget) {
    const auto last = static_cast<std::int32_t>(scores_.size());
    kept_.push_back(last);
    scores_.push_back(0);
    for (const auto j : kept_) {
      double most = 0;
      for (const auto& a : group_) most = std::max(most, a[last][j]);
      scores_[j] = std::max(decay_ * scores_[j], most);
    }
    if (static_cast<int>(kept_.size()) <= budget) return;
    auto least = kept_.end();
    for (auto j = kept_.begin(); j != kept_.end() && *j <= last - recent_; ++j) {
      if (least == kept_.end() || scores_[*j] < scores_[*least])
        least = j;  // of equal entries, the earlier one is evicted
    }
    kept_.erase(least);
  }

  std::vector<Matrix> group_;
  std::vector<double> scores_;
  std::vector<std::int32_t> kept_;
  int recent_;
  double decay_;
};

/// Scores of `snapkv:window=4,rows=max,kernel=1,gqa=max`: the largest attention of the last 4 queries. A prompt that
/// fits has no scores.
std::vector<double> largest(const std::vector<Matrix>& group, int tokens, int budget) {
  std::vector<double> out(tokens);
  if (tokens <= budget) return out;
  for (const auto& a : group) {
    for (int i = tokens - 4; i < tokens; ++i) {
      for (int j = 0; j <= i; ++j) out[j] = std::max(out[j], a[i][j]);
    }
  }
  const double lowest = *std::min_element(out.begin(), out.end());
  for (double& score : out) score -= lowest;
  return out;
}

/// Multiplying by decay=0.5 is exact, and no score becomes too small for a float.
TEST(Decoding, keeps_what_the_reference_keeps_for_100_steps) {
  constexpr int kTokens = 60;
  constexpr int kSteps = 100;
  for (const auto& [name, attention] : attentions()) {
    for (const auto& [kv_heads, group] : {std::pair{1, 1}, {2, 2}, {1, 4}}) {
      FakeLayer layer(kv_heads, group, kTokens, attention);
      for (const std::string decay : {"0", "0.5", "1"}) {
        for (const int budget : {5, 7, 30, 59, 60, 61, 100}) {
          for (int head = 0; head < kv_heads; ++head) {
            FakeDecode own(layer, "decoding(snapkv:window=4,rows=max,kernel=1,gqa=max):recent=0,decay=" + decay,
                           budget);
            const auto seen = layer.group(head, kSteps);
            Reference expected(seen, largest(seen, kTokens, budget), own.kept(head), 4, std::stod(decay));
            for (int i = 0; i < kSteps; ++i) {
              own.step();
              expected.step(budget);
              ASSERT_EQ(own.kept(head), expected.kept_)
                  << name << " decay " << decay << " budget " << budget << " step " << i;
              ASSERT_LE(own.lanes().length(head), budget);
            }
          }
        }
      }
    }
  }
}

TEST(Decoding, the_prompt_is_compressed_as_without_it) {
  FakeLayer layer(2, 2, 60, random_attention(3));
  for (const std::string inner :
       {"snapkv:window=8", "ada(span(snapkv:window=8))", "refit(snapkv:window=8)", "lookahead(h2o)", "chunk(dapq)"}) {
    for (const int budget : {20, 59}) {
      const auto plan = layer.plan("decoding(" + inner + ")", budget);
      const auto expected = layer.plan(inner, budget);
      ASSERT_FALSE(expected.heads.empty());
      EXPECT_EQ(plan.heads, expected.heads) << inner;
      EXPECT_EQ(plan.values, expected.values) << inner;
    }
  }
}

/// A few last tokens are kept: half of the budget that the first tokens leave.
TEST(Decoding, a_method_without_recent_tokens_keeps_some) {
  FakeLayer layer(1, 1, 60, [](int, int, int) { return 0.0; });
  const auto last_kept = [&](const std::string& spec, int budget) {
    const auto kept = layer.plan(spec, budget).heads[0];
    int count = 0;
    for (auto j = kept.rbegin(); j != kept.rend() && *j == 59 - count; ++j) ++count;
    return count;
  };
  EXPECT_EQ(last_kept("decoding(knorm)", 30), 8 + last_kept("knorm", 30));
  EXPECT_GE(last_kept("decoding(knorm)", 11), 5);
  EXPECT_GE(last_kept("decoding(kvzip):recent=20", 30), 13);  // four sinks
}

/// Scores of knorm are negative: minus the lengths of keys. They are scaled to lie between 0 and 1, so attention can
/// exceed them.
TEST(Decoding, scores_below_0_and_above_1_become_comparable_with_attention) {
  constexpr int kTokens = 60;
  FakeLayer layer(1, 1, kTokens, [](int, int i, int j) { return 0.004 * ((7 * i + 13 * j) % 17); });
  FakeDecode own(layer, "decoding(knorm):decay=0.75", 24);
  std::vector<double> scores;
  for (int j = 0; j < kTokens; ++j) {
    double square = 0;
    const auto row = layer.token(j);
    for (int i = 0; i < FakeLayer::kDim; ++i) square += static_cast<double>(row[i]) * row[i];
    scores.push_back(-std::sqrt(square));
  }
  const auto [lowest, highest] = std::minmax_element(scores.begin(), scores.end());
  const double low = *lowest;
  const double most = std::max(1.0, *highest - low);
  for (double& score : scores) score = (score - low) / most;
  Reference expected(layer.group(0, 60), scores, own.kept(0), 8, 0.75);
  for (int i = 0; i < 60; ++i) {
    own.step();
    expected.step(24);
    ASSERT_EQ(own.kept(0), expected.kept_) << "step " << i;
  }
}

/// Only one entry of each chunk is attended to. Scored by themselves, the others would be evicted first.
TEST(Decoding, what_is_kept_together_begins_with_one_score) {
  FakeLayer layer(1, 1, 60, [](int, int, int j) { return j < 40 && j % 10 == 3 ? 0.01 * (1 + j / 10) : 0.0; });
  const auto spec = Spec::parse("decoding(chunk(snapkv:window=4,kernel=1):length=10):recent=0");
  const auto plan = layer.plan(spec, 24);
  std::map<double, int> entries_of;
  for (const float score : plan.state[0][0]) ++entries_of[score];
  ASSERT_EQ(plan.heads[0].size(), 24);
  // The two best chunks of ten entries, and a window that gets no attention.
  EXPECT_EQ(entries_of.size(), 3);
  EXPECT_EQ(entries_of.begin()->second, 4);
  EXPECT_EQ(std::next(entries_of.begin())->second, 10);
  EXPECT_EQ(entries_of.rbegin()->second, 10);
}

TEST(Decoding, what_is_not_finite_leaves_first_or_last) {
  auto spec = Spec::parse("decoding(knorm)");
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  policy::Scores scores(1, 5);
  const float given[] = {std::nanf(""), -kInfinity, -3, 4, kInfinity};
  std::copy(std::begin(given), std::end(given), scores.head(0).begin());
  FakeLayer layer(1, 1, 5, [](int, int, int) { return 0.0; });
  layer.look(spec.method(), 3, 0, 1, [&](const policy::LayerView& view) {
    const auto state = spec.method().lanes.state.call(view, scores, {}).front();
    EXPECT_EQ(std::vector<float>(state.head(0).begin(), state.head(0).end()), (std::vector<float>{-1, -1, 0, 1, 1}));
  });
}

TEST(Decoding, heads_keep_the_places_that_they_were_given) {
  FakeLayer layer(2, 1, 60, [](int h, int, int j) { return h == 0 && j % 3 == 0 ? 0.04 : 0.0001; });
  FakeDecode own(layer, "decoding(ada(snapkv:window=4,kernel=1):floor=0):recent=0", 12);
  const auto first = own.kept(0).size();
  const auto second = own.kept(1).size();
  ASSERT_GT(first, second);
  for (int i = 0; i < 30; ++i) own.step();
  EXPECT_EQ(own.kept(0).size(), first);
  EXPECT_EQ(own.kept(1).size(), second);
}

}  // namespace
}  // namespace winnow::test
