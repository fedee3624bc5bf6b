// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "policy/fake_layer.h"

namespace winnow::test {
namespace {

using namespace reference;

/// A token's key for one head as lanes hold it.
std::vector<float> key_of(const FakeLayer& layer, int token, int head, ElementType type) {
  const auto all = layer.token(token);
  std::vector<float> key(all.begin() + head * FakeLayer::kDim, all.begin() + (head + 1) * FakeLayer::kDim);
  std::vector<std::byte> held(cache::row_bytes(type, FakeLayer::kDim));
  cache::encode_row(type, key, held.data());
  cache::decode_row(type, held.data(), key);
  return key;
}

/// Slots that a head's query reads: the pages with the largest bounds, and the last.
std::vector<std::int32_t> read_by(const FakeLayer& layer, int head, const std::vector<float>& query, int length,
                                  int budget, ElementType type) {
  constexpr int kPage = 16;
  const int pages = (length + kPage - 1) / kPage;
  const int wanted = (budget + kPage - 1) / kPage;
  if (pages <= wanted) return all_of(length);
  std::vector<std::vector<float>> keys;
  for (int j = 0; j < length; ++j) keys.push_back(key_of(layer, j, head, type));
  std::vector<double> score;
  for (int p = 0; p + 1 < pages; ++p) {
    double sum = 0;
    for (int g = 0; g < layer.shape().group(); ++g) {
      for (int c = 0; c < FakeLayer::kDim; ++c) {
        const double q = query[(head * layer.shape().group() + g) * FakeLayer::kDim + c];
        double most = -1e30;
        double least = 1e30;
        for (int j = p * kPage; j < (p + 1) * kPage; ++j) {
          const double k = keys[j][c];
          most = std::max(most, k);
          least = std::min(least, k);
        }
        sum += std::max(q * most, q * least);
      }
    }
    score.push_back(sum);
  }
  auto chosen = ranking(score);
  chosen.resize(z(wanted - 1));
  chosen.push_back(pages - 1);
  std::vector<std::int32_t> out;
  for (const auto p : chosen) {
    for (int j = p * kPage; j < std::min(length, (p + 1) * kPage); ++j) out.push_back(j);
  }
  return sorted(out);
}

class Quest : public testing::TestWithParam<ElementType> {};

TEST_P(Quest, reads_the_pages_that_the_reference_reads) {
  for (const auto& [kv_heads, group] : {std::pair{1, 1}, {2, 3}, {1, 7}}) {
    FakeLayer layer(kv_heads, group, 150, random_attention(1));
    for (const int budget : {1, 16, 17, 64, 140, 160, 400}) {
      FakeDecode decode(layer, "quest", budget, GetParam());
      for (int i = 0; i < 40; ++i) {
        decode.enter();
        const int length = decode.lanes().length(0);
        ASSERT_EQ(length, 151 + i);
        for (int head = 0; head < kv_heads; ++head) {
          ASSERT_EQ(decode.read(2, head), read_by(layer, head, decode.query(), length, budget, GetParam()))
              << "budget " << budget << " step " << i;
        }
        EXPECT_TRUE(decode.plans(1)[0].empty()) << "the first two layers are dense";
        decode.finish_step();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(types, Quest, testing::Values(ElementType::f32, ElementType::f16, ElementType::bf16),
                         [](const auto& instance) { return std::string(name_of(instance.param)); });

}  // namespace
}  // namespace winnow::test
