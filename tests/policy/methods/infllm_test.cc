// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "policy/fake_layer.h"

namespace winnow::test {
namespace {

using namespace reference;

std::vector<double> turned(const std::vector<double>& x, const Rope& rope, double positions) {
  auto out = x;
  for (std::size_t i = 0; i < rope.frequency.size(); ++i) {
    const double angle = positions * rope.frequency[i];
    out[2 * i] = x[2 * i] * std::cos(angle) - x[2 * i + 1] * std::sin(angle);
    out[2 * i + 1] = x[2 * i] * std::sin(angle) + x[2 * i + 1] * std::cos(angle);
  }
  return out;
}

struct Sizes {
  int block;
  int initial;
  int local;
};

Sizes sizes(int budget) {
  int block = 16;
  while (block * 2 <= budget / 16 && block < 128) block *= 2;
  return {block, std::min(128, budget / 8), budget / 2};
}

/// Blocks that the query of the last token reads, the best first.
std::vector<std::int32_t> blocks_read_by(const FakeLayer& layer, const FakeDecode& decode, int budget) {
  const auto s = sizes(budget);
  const int length = decode.position() + 1;
  const int blocks = (length - s.initial - s.local) / s.block;
  const int kv_heads = layer.shape().kv_heads;
  const auto query = decode.query();
  std::vector<double> relevance(z(blocks));
  for (int head = 0; head < kv_heads; ++head) {
    const auto group = layer.group(head, decode.position() - layer.tokens());
    for (int b = 0; b < blocks; ++b) {
      const int first = s.initial + b * s.block;
      std::vector<double> received;
      for (int j = first; j < first + s.block; ++j) {
        double sum = 0;
        for (int i = j; i < std::min(length - 1, j + s.local); ++i) {  // this token's own row is not counted yet
          for (const auto& a : group) sum += a[i][j];
        }
        received.push_back(sum);
      }
      const auto order = ranking(received, first);
      std::vector<double> mean(FakeLayer::kDim);
      for (int r = 0; r < 4; ++r) {
        const auto row = layer.token(order[r]);
        std::vector<double> key(row.begin() + head * FakeLayer::kDim, row.begin() + (head + 1) * FakeLayer::kDim);
        key = turned(key, FakeLayer::rope(), -order[r]);
        for (std::size_t c = 0; c < mean.size(); ++c) mean[c] += key[c] / 4;
      }
      for (int g = 0; g < layer.shape().group(); ++g) {
        const auto at = query.begin() + (head * layer.shape().group() + g) * FakeLayer::kDim;
        const auto q = turned({at, at + FakeLayer::kDim}, FakeLayer::rope(), s.local - decode.position());
        for (std::size_t c = 0; c < mean.size(); ++c) relevance[b] += q[c] * mean[c];
      }
    }
  }
  auto out = ranking(relevance);
  const int near = s.initial + blocks * s.block;
  out.resize(std::min(out.size(), z(std::max(0, (budget - s.initial - (length - near)) / s.block))));
  return sorted(out);
}

TEST(InfLlm, reads_the_blocks_that_the_reference_reads) {
  for (const auto& [kv_heads, group] : {std::pair{1, 1}, {2, 2}, {1, 7}}) {
    for (const int budget : {64, 128, 200, 300}) {
      FakeLayer layer(kv_heads, group, 290, random_attention(1));
      FakeDecode decode(layer, "infllm", budget);
      const auto s = sizes(budget);
      for (int i = 0; i < 60; ++i) {
        decode.enter();
        const int length = decode.lanes().length(0);
        const auto plans = decode.plans(0);
        if (length <= budget) {
          EXPECT_TRUE(plans[0].empty());
        } else {
          std::vector<std::int32_t> blocks;
          int read = 0;
          for (std::size_t r = 0; r < plans[0].size(); ++r) {
            const auto& range = plans[0][r];
            read += range.end - range.begin;
            const bool far = range.keys == cache::AttendRange::Keys::at_zero;
            EXPECT_EQ(far, r + 1 < plans[0].size());
            EXPECT_EQ(range.query_shift, far ? s.local - decode.position() : 0);
            if (r > 0 && far) blocks.push_back((range.begin - s.initial) / s.block);
          }
          ASSERT_EQ(blocks, blocks_read_by(layer, decode, budget)) << "budget " << budget << " step " << i;
          EXPECT_LE(read, budget);
          EXPECT_GE(length - plans[0].back().begin, s.local);
          EXPECT_EQ(plans[0].back().end, length);
        }
        decode.finish_step();
      }
    }
  }
}

}  // namespace
}  // namespace winnow::test
