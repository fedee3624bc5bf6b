// SPDX-License-Identifier: Apache-2.0
// Lanes compared with a simple model: a list of entries for each head.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "cache/growing_lanes.h"

namespace winnow::cache {
namespace {

struct Entry {
  std::int32_t position;
  std::vector<float> key;
  std::vector<float> value;
  float state;
};

/// A row encoded and decoded again.
std::vector<float> coded(ElementType type, const std::vector<float>& row) {
  std::vector<std::byte> bytes(row_bytes(type, static_cast<int>(row.size())));
  std::vector<float> out(row.size());
  encode_row(type, row, bytes.data());
  decode_row(type, bytes.data(), out);
  return out;
}

class LanesTest : public testing::TestWithParam<const char*> {
 protected:
  static constexpr int kHeads = 3;
  static constexpr int kDim = 40;

  LanesTest() : shape_{kHeads, kDim, KvType::parse(GetParam()), 1}, lanes_(account_, shape_), model_(kHeads) {}

  std::vector<float> row() {
    std::normal_distribution<float> normal;
    std::vector<float> out(kDim);
    for (float& x : out) x = normal(random_);
    return out;
  }
  Entry entry(std::int32_t position) { return {position, row(), row(), 0}; }

  /// Commits a prompt of n tokens; each head keeps a different set.
  void commit(int n) {
    LayerScratch scratch(account_, ElementType::f32, kHeads, kDim, n);
    KeepPlan plan;
    plan.heads.resize(kHeads);
    plan.state = {std::vector<std::vector<float>>(kHeads)};
    for (int j = 0; j < n; ++j) {
      scratch.extend(std::vector<std::int32_t>{100 + j});
      std::vector<float> keys;
      std::vector<float> values;
      for (std::size_t head = 0; head < kHeads; ++head) {
        Entry e = entry(100 + j);
        keys.insert(keys.end(), e.key.begin(), e.key.end());
        values.insert(values.end(), e.value.begin(), e.value.end());
        if (random_() % (2 + head) != 0) continue;
        e.state = static_cast<float>(j);
        plan.heads[head].push_back(j);
        plan.state[0][head].push_back(e.state);
        model_[head].push_back(e);
      }
      scratch.store(j, keys.data(), values.data());
    }
    lanes_.commit(plan, scratch);
  }

  void expect_equal(const LayerLanes& lanes) const {
    for (int head = 0; head < kHeads; ++head) {
      const auto& expected = model_[head];
      ASSERT_EQ(lanes.length(head), static_cast<int>(expected.size()));
      std::vector<LaneRun> runs;
      lanes.runs(head, {0, lanes.length(head), 7}, runs);
      int slot = 0;
      for (const auto& run : runs) {
        EXPECT_EQ(run.query_shift, 7);
        ASSERT_EQ(run.keys.count, run.values.count);
        for (int i = 0; i < run.keys.count; ++i, ++slot) {
          const Entry& e = expected[slot];
          std::vector<float> got(kDim);
          decode_row(run.keys.type, run.keys.row(i), got);
          ASSERT_EQ(got, coded(shape_.type.key, e.key));
          decode_row(run.values.type, run.values.row(i), got);
          ASSERT_EQ(got, coded(shape_.type.value, e.value));
          ASSERT_EQ(lanes.position(head, slot), e.position);
          ASSERT_EQ(lanes.state(head, 0, slot), e.state);
        }
      }
      ASSERT_EQ(slot, lanes.length(head));
    }
  }

  std::mt19937 random_{5};
  MemoryAccount account_;
  LaneShape shape_;
  GrowingLanes lanes_;
  std::vector<std::vector<Entry>> model_;
};

TEST_P(LanesTest, follow_a_plain_model_through_random_changes) {
  commit(50);
  expect_equal(lanes_);
  for (int step = 0; step < 600; ++step) {
    const int head = static_cast<int>(random_() % kHeads);
    auto& list = model_[head];
    const auto action = random_() % 5;
    if (action < 3 || list.empty()) {
      Entry e = entry(1000 + step);
      lanes_.reserve(1);
      lanes_.append(head, e.position, e.key, e.value);
      list.push_back(e);
    } else {
      const auto slot = random_() % list.size();
      if (action == 3) {
        Entry e = entry(2000 + step);
        lanes_.replace(head, static_cast<int>(slot), e.position, e.key, e.value);
        lanes_.state(head, 0, static_cast<int>(slot)) = e.state = 0.5F;
        list[slot] = e;
      } else {
        lanes_.remove(head, static_cast<int>(slot));
        list[slot] = list.back();
        list.pop_back();
      }
    }
    if (step % 97 == 0) expect_equal(lanes_);
  }
  expect_equal(lanes_);
  MemoryAccount other;
  const GrowingLanes copy = lanes_.clone(other);
  lanes_.reserve(1);
  lanes_.append(0, 1, row(), row());
  expect_equal(copy);
}

TEST_P(LanesTest, hold_exactly_what_is_kept) {
  commit(200);
  std::size_t entries = 0;
  for (const auto& list : model_) entries += list.size();
  EXPECT_EQ(account_.held(), entries * entry_bytes(shape_));
  lanes_.reserve(1);
  EXPECT_EQ(account_.held(), (entries + kHeads * LaneStorage::kTailBlock) * entry_bytes(shape_));
  lanes_.reserve(LaneStorage::kTailBlock);
  EXPECT_EQ(account_.held(), (entries + kHeads * LaneStorage::kTailBlock) * entry_bytes(shape_));
  lanes_ = GrowingLanes(account_, shape_);
  EXPECT_EQ(account_.held(), 0U);
}

/// Summaries take as many bytes as rows of the keys' type, or two per value for quantized keys. A head's first
/// summaries are stored without gaps; later ones come in blocks for all heads.
TEST_P(LanesTest, store_summaries_in_the_keys_type) {
  const bool floats = shape_.type.key == ElementType::f32;
  const ElementType type = floats || shape_.type.key == ElementType::bf16 ? shape_.type.key : ElementType::f16;
  shape_.summary_size = 2 * kDim;
  lanes_ = GrowingLanes(account_, shape_);
  std::vector<int> first;
  std::vector<int> blocks;
  for (int head = 0; head < kHeads; ++head) {
    first.push_back(5 + 3 * head);
    blocks.push_back(first.back() + 2);
  }
  blocks[0] = first[0] + Summaries::kTailRows + 3;
  const std::size_t bytes = std::size_t{2} * kDim * (floats ? 4 : 2);
  const auto in_first = static_cast<std::size_t>(std::accumulate(first.begin(), first.end(), 0));
  lanes_.summaries().allocate(first);
  EXPECT_EQ(account_.held(), in_first * bytes);
  lanes_.summaries().reserve(first);
  EXPECT_EQ(account_.held(), in_first * bytes);
  lanes_.summaries().reserve(blocks);
  EXPECT_EQ(account_.held(), (in_first + std::size_t{2} * Summaries::kTailRows * kHeads) * bytes);
  lanes_.summaries().reserve(blocks);
  EXPECT_EQ(account_.held(), (in_first + std::size_t{2} * Summaries::kTailRows * kHeads) * bytes);
  std::vector<std::vector<float>> written;
  for (int head = 0; head < kHeads; ++head) {
    for (int block = 0; block < blocks[head]; ++block) {
      auto& values = written.emplace_back(row());
      for (const float x : row()) values.push_back(x);
      lanes_.summaries().set(head, block, values);
    }
  }
  MemoryAccount another;
  const Summaries copy = lanes_.summaries().clone(another);
  EXPECT_EQ(another.held(), account_.held());
  std::vector<float> got(2 * kDim);
  auto expected = written.begin();
  for (int head = 0; head < kHeads; ++head) {
    for (int block = 0; block < blocks[head];) {
      const Rows rows = copy.rows(head, block, blocks[head]);
      ASSERT_EQ(rows.count, block == 0             ? first[head]
                            : block == first[head] ? std::min(Summaries::kTailRows, blocks[head] - first[head])
                                                   : 3);
      for (int i = 0; i < rows.count; ++i, ++block, ++expected) {
        decode_row(rows.type, rows.row(i), got);
        ASSERT_EQ(got, coded(type, *expected)) << "head " << head << " block " << block;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(types, LanesTest, testing::Values("f32", "f16", "bf16", "q8_0", "q4_0", "q8_0/q4_0"),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           for (char& c : name) c = c == '/' ? '_' : c;
                           return name;
                         });

/// Error bound of one value by the format's definition, for a row with the largest magnitude `most`: half a unit in the
/// last place of 11 or 8 bits; for q8_0 half a step of most/127 plus the rounding of the f16 scale; for q4_0 a step is
/// most/8, and the end without a code can lose a whole step.
double bound(ElementType type, double x, double most) {
  switch (type) {
    case ElementType::f32:
      return 0;
    case ElementType::f16:
      return std::abs(x) / 2048 + 1e-7;
    case ElementType::bf16:
      return std::abs(x) / 256;
    case ElementType::q8_0:
      return most / 127 * 0.5 + most / 2048;
    case ElementType::q4_0:
      return most / 8 + most / 2048;
  }
  return 0;
}

TEST(Codec, errs_no_more_than_its_format) {
  std::mt19937 random(9);
  std::normal_distribution<float> normal;
  for (const auto type :
       {ElementType::f32, ElementType::f16, ElementType::bf16, ElementType::q8_0, ElementType::q4_0}) {
    for (const int dim : {33, 64, 80, 96, 128, 256}) {
      for (int round = 0; round < 50; ++round) {
        std::vector<float> row(dim);
        for (float& x : row) x = normal(random);
        const auto back = coded(type, row);
        for (std::size_t block = 0; block < row.size(); block += 32) {
          double most = 0;
          const auto end = std::min(row.size(), block + 32);
          for (std::size_t i = block; i < end; ++i) most = std::max(most, std::abs(static_cast<double>(row[i])));
          for (std::size_t i = block; i < end; ++i)
            EXPECT_LE(std::abs(back[i] - row[i]), bound(type, row[i], most)) << name_of(type) << " " << dim;
        }
      }
    }
  }
}

TEST(Codec, rows_have_the_formats_sizes) {
  EXPECT_EQ(row_bytes(ElementType::f32, 64), 256U);
  EXPECT_EQ(row_bytes(ElementType::f16, 64), 128U);
  EXPECT_EQ(row_bytes(ElementType::q8_0, 64), 2 * 34U);
  EXPECT_EQ(row_bytes(ElementType::q4_0, 80), 3 * 18U);
}

}  // namespace
}  // namespace winnow::cache
