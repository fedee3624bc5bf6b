// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "policy/fake_layer.h"
#include "policy/redundancy.h"
#include "support/refusal.h"
#include "winnow/error.h"

namespace winnow::test {
namespace {

using namespace reference;

using Keys = std::vector<std::vector<double>>;

double cosine(const std::vector<double>& a, const std::vector<double>& b) {
  double product = 0;
  double squares_a = 0;
  double squares_b = 0;
  for (std::size_t c = 0; c < a.size(); ++c) {
    product += a[c] * b[c];
    squares_a += a[c] * a[c];
    squares_b += b[c] * b[c];
  }
  return product / std::sqrt(squares_a * squares_b);
}

/// Softmax of each key's mean cosine with the others. For each key, the last key similar to it does not get their
/// cosine.
std::vector<double> redundancies(const Keys& keys) {
  std::vector<double> sums(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    std::size_t spared = keys.size();
    for (std::size_t j = 0; j < keys.size(); ++j) {
      if (j != i && cosine(keys[i], keys[j]) > 0.5) spared = j;
    }
    for (std::size_t j = 0; j < keys.size(); ++j) {
      if (j != i && j != spared) sums[j] += cosine(keys[i], keys[j]) / static_cast<double>(keys.size());
    }
  }
  double all = 0;
  for (const double s : sums) all += std::exp(s);
  for (double& s : sums) s = std::exp(s) / all;
  return sums;
}

struct Settings {
  double lambda = 0.07;
  int window = 8;
  int kernel = 7;
  int buffer = 128;
  std::string positions = "absolute";

  std::string spec() const {
    return "r-kv:lambda=" + std::to_string(lambda) + ",window=" + std::to_string(window) +
           ",kernel=" + std::to_string(kernel) + ",buffer=" + std::to_string(buffer) + ",positions=" + positions;
  }
};

/// One KV head after the prompt.
struct Reference {
  Reference(const FakeLayer& layer, int head, int budget, const Settings& s, int more)
      : layer_(layer),
        attention_(layer.group(head, more)),
        head_(head),
        budget_(budget),
        s_(s),
        last_(layer.tokens() - 1),
        kept_(all_of(layer.tokens())) {
    if (layer.tokens() > budget) evict();
  }
  void step() {
    kept_.push_back(++last_);
    if (static_cast<int>(kept_.size()) == budget_ + s_.buffer) evict();
  }
  std::vector<double> key(std::size_t i) const {
    const auto row = layer_.token(kept_[i]);
    std::vector<float> key(row.begin() + head_ * FakeLayer::kDim, row.begin() + (head_ + 1) * FakeLayer::kDim);
    for (int c = 0; c < FakeLayer::rope().rotated_dims(); ++c) key[z(c)] /= layer_.stretched_rope().magnitude;
    if (ranked_) FakeLayer::rope().shift(key.data(), static_cast<std::int64_t>(i) - kept_[i]);
    return {key.begin(), key.end()};
  }
  void evict() {
    const std::size_t past = kept_.size() - z(s_.window);
    std::vector<double> received(past);
    double all = 0;
    for (std::size_t i = 0; i < past; ++i) {
      for (int row = last_ - s_.window + 1; row <= last_; ++row) {
        for (const auto& a : attention_) received[i] += a[z(row)][z(kept_[i])];
      }
      all += received[i];
    }
    for (double& r : received) r = all > 0 ? r / all : 0;
    received = pooled(received, s_.kernel, "max", "valid");
    Keys keys;
    for (std::size_t i = 0; i < kept_.size(); ++i) keys.push_back(key(i));
    const auto redundant = redundancies(keys);
    for (std::size_t i = 0; i < past; ++i) received[i] = s_.lambda * received[i] - (1 - s_.lambda) * redundant[i];
    auto order = ranking(received);
    order.resize(z(budget_ - s_.window));
    std::vector<std::int32_t> left;
    for (const auto i : sorted(order)) left.push_back(kept_[z(i)]);
    left.insert(left.end(), kept_.begin() + static_cast<std::ptrdiff_t>(past), kept_.end());
    kept_ = left;
    ranked_ = s_.positions == "cache";
  }

  const FakeLayer& layer_;
  std::vector<Matrix> attention_;
  int head_;
  int budget_;
  Settings s_;
  std::int32_t last_;
  bool ranked_ = false;
  std::vector<std::int32_t> kept_;
};

void expect_as_reference(const FakeLayer& layer, int budget, const Settings& s, int steps) {
  std::vector<Reference> expected;
  for (int head = 0; head < layer.shape().kv_heads; ++head) expected.emplace_back(layer, head, budget, s, steps + 1);
  expect_as_references(layer, s.spec(), budget, budget + s.buffer, std::move(expected), steps);
}

TEST(RKV, keeps_what_the_reference_keeps_for_200_steps) {
  for (const auto& [kv_heads, group] : {std::pair{1, 1}, {2, 3}, {1, 7}}) {
    const FakeLayer layer(kv_heads, group, 60, random_attention(5));
    for (const int buffer : {8, 9, 20}) {
      for (const int budget : {9, 20, 59, 60, 61, 100}) expect_as_reference(layer, budget, {.buffer = buffer}, 200);
    }
  }
}

TEST(RKV, follows_its_options) {
  const FakeLayer layer(2, 2, 60, random_attention(5));
  for (const int budget : {20, 70}) {
    expect_as_reference(layer, budget, {.lambda = 1, .window = 4, .kernel = 1, .buffer = 6}, 60);
    expect_as_reference(layer, budget, {.lambda = 0, .window = 4, .buffer = 6}, 60);
    expect_as_reference(layer, budget, {.lambda = 0.5, .window = 1, .kernel = 3, .buffer = 1}, 60);
  }
}

TEST(RKV, compares_keys_as_queries_see_them) {
  const FakeLayer layer(2, 2, 60, random_attention(5));
  for (const int budget : {20, 70}) expect_as_reference(layer, budget, {.buffer = 9, .positions = "cache"}, 60);
  expect_as_reference(FakeLayer(2, 2, 60, random_attention(5), 0, 1.3F), 20, {.buffer = 9}, 60);
}

/// The prompt has more keys than are compared at once.
TEST(RKV, compares_all_keys_of_a_long_prompt) {
  const FakeLayer layer(1, 2, 700, random_attention(5));
  EXPECT_EQ(layer.plan("r-kv", 300).heads[0], Reference(layer, 0, 300, {}, 1).kept_);
  EXPECT_EQ(layer.plan("r-kv:lambda=0", 300).heads[0], Reference(layer, 0, 300, {.lambda = 0}, 1).kept_);
}

/// Keys 0, 2 and 3 are similar. Key 3 is the last key similar to 0 and to 2, and key 2 the last similar to 3. So key 0
/// gets the cosines of both others, key 2 that of key 0, and key 3 none.
TEST(RKV, of_similar_keys_the_last_is_not_redundant_by_hand) {
  const std::vector<float> keys = {2, 0, 0, 0, 3, 0, 1, 0, 0, 5, 0, 0, 0, 0, 1};
  const auto r = policy::redundancy(5, 3, [&](int first, int count, std::span<float> out) {
    std::copy_n(keys.begin() + 3 * first, 3 * count, out.begin());
  });
  EXPECT_EQ(std::vector<double>(r.begin(), r.end()), (std::vector<double>{0.4, 0, 0.2, 0, 0}));
}

TEST(RKV, a_key_without_a_length_is_like_none) {
  const auto r = policy::redundancy(2, 2, [](int, int, std::span<float> out) {
    std::ranges::fill(out, 0.0F);
    out[0] = 1;
  });
  EXPECT_EQ(std::vector<double>(r.begin(), r.end()), (std::vector<double>{0, 0}));
}

TEST(RKV, evicts_once_where_it_is_told_to) {
  const FakeLayer layer(1, 2, 60, random_attention(5));
  FakeDecode own(layer, "r-kv:buffer=8,when=prefill", 20);
  for (int i = 0; i < 30; ++i) own.step();
  EXPECT_EQ(own.lanes().length(0), 50);
}

TEST(RKV, a_buffer_shorter_than_the_window_is_refused) {
  EXPECT_EQ(usage_error([] { Spec::parse("r-kv:buffer=7"); }),
            "r-kv: buffer=7 must be at least window=8, the number of queries that are observed before an eviction");
  EXPECT_THROW(Spec::parse("critical(r-kv)"), UsageError);
}

}  // namespace
}  // namespace winnow::test
