// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "policy/fake_layer.h"

namespace winnow::test {
namespace {

using namespace reference;

constexpr int kTokens = 150;
constexpr int kSteps = 40;

/// Keys as lanes hold them, [head][token][d].
using Keys = std::vector<std::vector<std::vector<float>>>;

Keys keys_of(const FakeLayer& layer, ElementType type) {
  Keys out(z(layer.shape().kv_heads));
  for (int token = 0; token < kTokens + kSteps; ++token) {
    const auto all = layer.token(token);
    for (int head = 0; head < layer.shape().kv_heads; ++head) {
      std::vector<float> key(all.begin() + head * FakeLayer::kDim, all.begin() + (head + 1) * FakeLayer::kDim);
      std::vector<std::byte> held(cache::row_bytes(type, FakeLayer::kDim));
      cache::encode_row(type, key, held.data());
      cache::decode_row(type, held.data(), key);
      out[z(head)].push_back(key);
    }
  }
  return out;
}

/// Slots of a lane that a head's query reads: `wanted` pages, which are the last one and those with the largest bounds.
std::vector<std::int32_t> read_by(const FakeLayer& layer, int head, const Keys& keys, const std::vector<float>& query,
                                  const std::vector<std::int32_t>& lane, int page, int wanted) {
  const int length = static_cast<int>(lane.size());
  const int pages = (length + page - 1) / page;
  if (pages <= wanted) return all_of(length);
  std::vector<double> score;
  for (int p = 0; p + 1 < pages; ++p) {
    double sum = 0;
    for (int g = 0; g < layer.shape().group(); ++g) {
      for (int c = 0; c < FakeLayer::kDim; ++c) {
        const double q = query[(head * layer.shape().group() + g) * FakeLayer::kDim + c];
        double most = -1e30;
        double least = 1e30;
        for (int j = p * page; j < (p + 1) * page; ++j) {
          const double k = keys[z(head)][z(lane[z(j)])][z(c)];
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
    for (int j = p * page; j < std::min(length, (p + 1) * page); ++j) out.push_back(j);
  }
  return sorted(out);
}

class Quest : public testing::TestWithParam<ElementType> {};

TEST_P(Quest, reads_the_pages_that_the_reference_reads) {
  for (const auto& [kv_heads, group] : {std::pair{1, 1}, {2, 3}, {1, 7}}) {
    FakeLayer layer(kv_heads, group, kTokens, random_attention(1));
    const auto keys = keys_of(layer, GetParam());
    for (const int budget : {1, 16, 17, 64, 140, 160, 400}) {
      FakeDecode decode(layer, "quest", budget, GetParam());
      for (int i = 0; i < kSteps; ++i) {
        decode.enter();
        const int length = decode.lanes().length(0);
        ASSERT_EQ(length, kTokens + 1 + i);
        for (int head = 0; head < kv_heads; ++head) {
          ASSERT_EQ(decode.read(2, head),
                    read_by(layer, head, keys, decode.query(), all_of(length), 16, (budget + 15) / 16))
              << "budget " << budget << " step " << i;
        }
        EXPECT_TRUE(decode.plans(1)[0].empty()) << "the first two layers are dense";
        decode.finish_step();
      }
    }
  }
}

/// X fills the lanes, whose lengths differ if heads share a budget.
TEST_P(Quest, around_a_method_reads_the_pages_that_the_reference_reads) {
  struct Around {
    const char* inner;
    const char* options;
    int page;
    double read;
    int dense;
  };
  for (const auto& [inner, options, page, read, dense] :
       {Around{"snapkv:window=8", "", 4, 0.25, 2},
        {"ada(snapkv:window=8)", ":read=0.5,page=4,dense=0", 4, 0.5, 0},
        {"ada(h2o:when=prefill):floor=0", ":read=0.1,page=5,dense=1", 5, 0.1, 1},
        {"keydiff", ":read=0,page=16", 16, 0, 2},
        {"kvzip", ":read=0.3", 4, 0.3, 2}}) {
    const auto spec = std::string("quest(") + inner + ")" + options;
    for (const auto& [kv_heads, group] : {std::pair{1, 1}, {2, 3}, {1, 7}}) {
      const FakeLayer layer(kv_heads, group, kTokens, random_attention(1));
      const auto keys = keys_of(layer, GetParam());
      for (const int budget : {16, 40, 100, 149, 170}) {
        FakeDecode decode(layer, spec, budget, GetParam());
        const auto plan = layer.plan(inner, budget);
        std::vector<std::vector<std::int32_t>> lanes;
        for (int head = 0; head < kv_heads; ++head) lanes.push_back(kept(plan, head, kTokens));
        for (int i = 0; i < kSteps; ++i) {
          decode.enter();
          for (int head = 0; head < kv_heads; ++head) {
            auto& lane = lanes[z(head)];
            lane.push_back(kTokens + i);
            ASSERT_EQ(decode.kept(head), lane) << spec << " @ " << budget;
            const int pages = (static_cast<int>(lane.size()) + page - 1) / page;
            const bool fits = budget >= kTokens + 1 + i;
            const int wanted = fits ? pages : std::max(1, static_cast<int>(std::ceil(read * pages)));
            ASSERT_EQ(decode.read(dense, head), read_by(layer, head, keys, decode.query(), lane, page, wanted))
                << spec << " @ " << budget << " step " << i;
          }
          if (dense > 0) {
            EXPECT_TRUE(decode.plans(dense - 1)[0].empty());
          }
          decode.finish_step();
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(types, Quest, testing::Values(ElementType::f32, ElementType::f16, ElementType::bf16),
                         [](const auto& instance) { return std::string(name_of(instance.param)); });

}  // namespace
}  // namespace winnow::test
