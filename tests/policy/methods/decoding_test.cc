// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "policy/fake_layer.h"

namespace winnow::test {
namespace {

using namespace reference;

/// Scores of one KV head, token by token: they fade by `decay`, and the largest attention of the group takes their
/// place where it is more. Entries that the prompt's end has left are given; later the one of the lowest score leaves.
struct Reference {
  Reference(std::vector<Matrix> group, std::vector<double> scores, std::vector<std::int32_t> kept, int recent,
            float decay)
      : group_(std::move(group)), scores_(std::move(scores)), kept_(std::move(kept)), recent_(recent), decay_(decay) {
    const double lowest = *std::min_element(scores_.begin(), scores_.end());
    for (double& score : scores_) score -= lowest;
  }
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
      if (least == kept_.end() || scores_[*j] < scores_[*least]) least = j;  // of equals the earlier leaves
    }
    kept_.erase(least);
  }

  std::vector<Matrix> group_;
  std::vector<double> scores_;
  std::vector<std::int32_t> kept_;
  int recent_;
  double decay_;
};

/// The scores of `snapkv:window=4,rows=max,kernel=1,gqa=max`: the largest attention of the last 4 queries.
std::vector<double> largest(const std::vector<Matrix>& group, int tokens) {
  std::vector<double> out(tokens);
  for (const auto& a : group) {
    for (int i = tokens - 4; i < tokens; ++i) {
      for (int j = 0; j <= i; ++j) out[j] = std::max(out[j], a[i][j]);
    }
  }
  return out;
}

/// decay=0.5 multiplies exactly, and nothing comes as far down as a double goes and a float does not.
TEST(Decoding, keeps_what_the_reference_keeps_for_100_steps) {
  constexpr int kTokens = 60;
  constexpr int kSteps = 100;
  for (const auto& [name, attention] : attentions()) {
    for (const auto& [kv_heads, group] : {std::pair{1, 1}, {2, 2}, {1, 4}}) {
      FakeLayer layer(kv_heads, group, kTokens, attention);
      for (const std::string decay : {"0", "0.5", "1"}) {
        for (const int budget : {5, 7, 30, 59, 60, 61, 100}) {
          for (int head = 0; head < kv_heads; ++head) {
            FakeDecode own(layer, "decoding(snapkv:window=4,rows=max,kernel=1,gqa=max):decay=" + decay, budget);
            const auto seen = layer.group(head, kSteps);
            Reference expected(seen, largest(seen, kTokens), own.kept(head), 4, std::stof(decay));
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
       {"snapkv:window=4", "ada(span(snapkv:window=4))", "knorm", "keydiff", "kvzip", "refit(snapkv:window=4)"}) {
    for (const int budget : {20, 59, 60}) {
      EXPECT_EQ(layer.plan("decoding(" + inner + ")", budget).heads, layer.plan(inner, budget).heads) << inner;
    }
  }
}

/// Scores of knorm are below 0: the shortest key has the highest one. They count from the lowest, so that none rises as
/// it fades.
TEST(Decoding, negative_scores_fade_too) {
  FakeLayer layer(1, 1, 40, [](int, int, int) { return 0.0; });
  FakeDecode own(layer, "decoding(knorm):decay=0.5", 20);
  const auto before = own.kept(0);
  own.step();
  // No query attends to anything. So the new token, whose score is 0, leaves before every other.
  EXPECT_EQ(own.kept(0), before);
}

TEST(Decoding, heads_keep_the_places_that_they_were_given) {
  FakeLayer layer(2, 1, 60, [](int h, int, int j) { return h == 0 && j % 3 == 0 ? 0.04 : 0.0001; });
  FakeDecode own(layer, "decoding(ada(snapkv:window=4,kernel=1):floor=0)", 12);
  const auto first = own.kept(0).size();
  const auto second = own.kept(1).size();
  ASSERT_GT(first, second);
  for (int i = 0; i < 30; ++i) own.step();
  EXPECT_EQ(own.kept(0).size(), first);
  EXPECT_EQ(own.kept(1).size(), second);
}

}  // namespace
}  // namespace winnow::test
