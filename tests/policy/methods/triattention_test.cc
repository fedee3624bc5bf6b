// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "policy/fake_layer.h"
#include "policy/trigonometric.h"
#include "winnow/error.h"

namespace winnow::test {
namespace {

using namespace reference;

struct Settings {
  int sinks = 4;
  int recent = 128;
  bool prompt_stays = true;
  int future = 65536;
  std::string gqa = "max";
  int buffer = 128;
  std::string positions = "absolute";

  std::string spec() const {
    return "triattention:sinks=" + std::to_string(sinks) + ",recent=" + std::to_string(recent) +
           ",prompt=" + (prompt_stays ? "stay" : "evict") + ",future=" + std::to_string(future) + ",gqa=" + gqa +
           ",buffer=" + std::to_string(buffer) + ",positions=" + positions;
  }
};

/// One KV head after the prompt.
struct Reference {
  Reference(const FakeLayer& layer, int head, int budget, const Settings& s)
      : layer_(layer), head_(head), budget_(budget), s_(s), last_(layer.tokens() - 1), kept_(all_of(layer.tokens())) {
    const int n = layer.tokens();
    first_ = s.prompt_stays && 2 * n <= budget ? n : std::min(s.sinks, std::min(n, budget));
    recent_ = std::min(s.recent, (budget - first_) / 2);
    if (n > budget) evict();
  }
  void step() {
    kept_.push_back(++last_);
    if (static_cast<int>(kept_.size()) == budget_ + s_.buffer) evict();
  }
  void evict() {
    std::vector<std::size_t> places;
    std::vector<Complex> keys;
    std::vector<double> distances;
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      if (kept_[i] < first_ || kept_[i] > last_ - recent_) continue;
      places.push_back(i);
      const auto row = layer_.token(kept_[i]);
      const auto key = pairs_of(row.data() + head_ * FakeLayer::kDim, FakeLayer::kDim, FakeLayer::rope());
      keys.push_back(unrotated(key, kept_[i], frequencies(FakeLayer::kDim, FakeLayer::rope())));
      distances.push_back(ranked_ ? static_cast<double>(kept_.size() - 1 - i) : last_ - kept_[i]);
    }
    const TrigonometricGroup group{layer_.statistics,      head_ * layer_.shape().group(),
                                   layer_.shape().group(), FakeLayer::kDim,
                                   FakeLayer::rope(),      s_.future,
                                   s_.gqa == "max"};
    const auto order = ranking(group.scores(keys, distances));
    std::vector<bool> goes(kept_.size());
    const std::size_t stay = order.size() + z(budget_) - kept_.size();
    for (std::size_t i = stay; i < order.size(); ++i) goes[places[z(order[i])]] = true;
    std::vector<std::int32_t> left;
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      if (!goes[i]) left.push_back(kept_[i]);
    }
    kept_ = left;
    ranked_ = s_.positions == "cache";
  }

  const FakeLayer& layer_;
  int head_;
  int budget_;
  Settings s_;
  int first_ = 0;
  int recent_ = 0;
  std::int32_t last_;
  bool ranked_ = false;  ///< distances are differences of ranks
  std::vector<std::int32_t> kept_;
};

void expect_as_reference(const FakeLayer& layer, int budget, const Settings& s, int steps) {
  std::vector<Reference> expected;
  for (int head = 0; head < layer.shape().kv_heads; ++head) expected.emplace_back(layer, head, budget, s);
  expect_as_references(layer, s.spec(), budget, budget + s.buffer, std::move(expected), steps);
}

TEST(TriAttention, keeps_what_the_reference_keeps_for_200_steps) {
  for (const auto& [kv_heads, group] : {std::pair{1, 1}, {2, 3}, {1, 7}}) {
    const FakeLayer layer(kv_heads, group, 60, random_attention(5));
    // Standard scores of two evictable entries are 1 and -1, so in a group the largest is 1 for both.
    const int least = group == 1 ? 5 : 8;
    for (const int buffer : {1, 5, 16}) {
      for (const int budget : {least, 20, 59, 60, 61, 119, 120, 150})
        expect_as_reference(layer, budget, {.buffer = buffer}, 200);
    }
  }
}

TEST(TriAttention, follows_its_options) {
  const FakeLayer layer(2, 3, 60, random_attention(5));
  for (const int budget : {20, 40, 130}) {
    expect_as_reference(layer, budget, {.recent = 8, .gqa = "mean", .buffer = 7}, 90);
    expect_as_reference(layer, budget, {.sinks = 0, .recent = 0, .future = 1, .buffer = 7}, 90);
    expect_as_reference(layer, budget, {.recent = 8, .prompt_stays = false, .future = 300, .buffer = 7}, 90);
  }
}

TEST(TriAttention, goes_by_effective_positions) {
  const FakeLayer layer(2, 2, 60, random_attention(5));
  for (const int budget : {20, 59, 70, 130})
    expect_as_reference(layer, budget, {.recent = 8, .buffer = 7, .positions = "cache"}, 120);
}

TEST(TriAttention, counts_the_magnitude_of_rope) {
  const FakeLayer layer(2, 2, 60, random_attention(5), 0, 1.3F);
  expect_as_reference(layer, 30, {.recent = 8, .buffer = 7}, 60);
}

/// All keys are equal before RoPE, and all queries equal the key's third pair. So the score of position p is
/// proportional to cos(0.1 (59 - p + 1)), with a period of 62.8 tokens: the best entries are the nearest, and those
/// about a period away.
TEST(TriAttention, prefers_distances_by_hand) {
  FakeLayer layer(1, 1, 60, random_attention(5), 1);
  const auto key = layer.token(0);
  layer.statistics.mean.assign(FakeLayer::kDim, 0);
  layer.statistics.mean_lengths.assign(FakeLayer::kDim / 2, 0);
  for (const std::size_t i : {4, 5}) layer.statistics.mean[i] = key[i];
  layer.statistics.mean_lengths[2] = std::hypot(key[4], key[5]);
  std::vector<std::int32_t> expected;
  for (int p = 0; p <= 8; ++p) expected.push_back(p);
  for (int p = 49; p < 60; ++p) expected.push_back(p);
  EXPECT_EQ(layer.plan("triattention:sinks=0,recent=0,future=1", 20).heads[0], expected);
}

/// Queries with a mean of 0 have no preferred direction.
TEST(TriAttention, prefers_long_keys_where_queries_have_no_centre) {
  FakeLayer layer(1, 2, 60, random_attention(5));
  layer.statistics.mean.assign(2 * FakeLayer::kDim, 0);
  layer.statistics.mean_lengths.assign(FakeLayer::kDim, 0);
  layer.statistics.mean_lengths[1] = layer.statistics.mean_lengths[5] = 3;
  std::vector<double> lengths;
  for (int j = 0; j < 60; ++j) lengths.push_back(std::hypot(layer.token(j)[2], layer.token(j)[3]));
  auto best = ranking(lengths);
  best.resize(20);
  EXPECT_EQ(layer.plan("triattention:sinks=0,recent=0", 20).heads[0], sorted(best));
}

TEST(TriAttention, keeps_a_prompt_that_takes_half_of_the_budget) {
  const FakeLayer layer(1, 1, 30, random_attention(5));
  FakeDecode stays(layer, "triattention:buffer=4", 60);
  FakeDecode goes(layer, "triattention:buffer=4", 59);
  for (int i = 0; i < 300; ++i) stays.step(), goes.step();
  const auto of_prompt = [](const FakeDecode& decode) {
    const auto kept = decode.kept(0);
    return std::ranges::count_if(kept, [](std::int32_t p) { return p < 30; });
  };
  EXPECT_EQ(of_prompt(stays), 30);
  EXPECT_LT(of_prompt(goes), 30);
}

TEST(TriAttention, evicts_once_where_it_is_told_to) {
  const FakeLayer layer(1, 2, 60, random_attention(5));
  FakeDecode own(layer, "triattention:buffer=1,when=prefill", 20);
  for (int i = 0; i < 30; ++i) own.step();
  EXPECT_EQ(own.lanes().length(0), 50);
}

TEST(TriAttention, cannot_be_multiplied_by_lengths) { EXPECT_THROW(Spec::parse("critical(triattention)"), UsageError); }

}  // namespace
}  // namespace winnow::test
