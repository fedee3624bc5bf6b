// SPDX-License-Identifier: Apache-2.0
// Effective positions and merged entries of lanes, compared with a simple model; also after saving and loading.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "base/as_size.h"
#include "cache/growing_lanes.h"
#include "cache/lanes_file.h"

namespace winnow::cache {
namespace {

constexpr int kDim = 8;

/// The expected state of one entry.
struct Entry {
  std::vector<float> rotated;  ///< its original rotated key
  std::vector<float> value;
  float state = 0;
};

/// Random changes to one of two lanes.
class PositionsTest : public testing::TestWithParam<EffectivePositions> {
 protected:
  PositionsTest()
      : rope_{Rope::Pairing::halves, {1.0F, 0.1F, 0.01F}},
        shape_{2, kDim, KvType::parse("f32"), 1, &rope_, GetParam(), kDim, 16, 1},
        lanes_(account_, shape_) {}

  std::vector<float> row() {
    std::normal_distribution<float> normal;
    std::vector<float> out(kDim);
    for (float& x : out) x = normal(random_);
    return out;
  }
  int slot() { return static_cast<int>(random_() % as_size(lanes_.length(0))); }

  void append() {
    const Entry entry{row(), row()};
    lanes_.reserve(1);
    lanes_.append(0, next_, entry.rotated, entry.value);
    model_[next_++] = entry;
  }
  void replace(int slot) {
    drop(slot);
    const Entry entry{row(), row()};
    lanes_.replace(0, slot, next_, entry.rotated, entry.value);
    model_[next_++] = entry;
  }
  void remove(int slot) {
    drop(slot);
    const auto merged = lanes_.merged_entries(0).of(slot);
    for (int i = merged.first; i < merged.end; ++i) merged_.erase(lanes_.merged_entries(0).positions()[i]);
    lanes_.remove(0, slot);
  }
  void merge(int slot, int centre) {
    lanes_.unrotate(0);
    lanes_.reserve_merged_entries(1);
    merged_.insert(lanes_.position(0, slot));
    drop(slot);
    lanes_.merge_into(0, slot, centre, 1);
  }
  void drop(int slot) { model_.erase(lanes_.position(0, slot)); }

  /// The effective position of each position's entry, by the definition.
  std::map<std::int32_t, std::int32_t> expected() const {
    std::map<std::int32_t, std::int32_t> out;
    for (const auto& [position, entry] : model_) out[position] = position;
    for (const auto position : merged_) out[position] = position;
    std::int32_t rank = 0;
    for (auto& [position, effective] : out) {
      if (GetParam() == EffectivePositions::cache) effective = rank++;
    }
    return out;
  }

  void expect_entries(const LayerLanes& lanes) const {
    std::vector<LaneRun> runs;
    lanes.runs(0, {0, lanes.length(0)}, runs);
    std::map<std::int32_t, std::int32_t> seen;
    for (const auto& run : runs) {
      ASSERT_NE(run.rotate_to, nullptr);
      for (int i = 0; i < run.entries(); ++i) {
        const auto index = as_size(run.first + i - lanes.length(0));
        const bool merged = run.centres != nullptr;
        const auto position = merged ? lanes.merged_entries(0).positions()[index] : lanes.position(0, run.first + i);
        EXPECT_TRUE(seen.emplace(position, run.rotate_to[i]).second) << "twice: " << position;
        EXPECT_LT(run.rotate_to[i], run.rotate_to_end);
        if (!merged) expect_vectors(lanes, run.first + i, model_.at(position));
      }
    }
    EXPECT_EQ(seen, expected());
  }

  void expect_vectors(const LayerLanes& lanes, int slot, const Entry& entry) const {
    std::vector<float> key(kDim);
    std::vector<float> value(kDim);
    lanes.key(0, slot, key);
    lanes.value(0, slot, value);
    rope_.shift(key.data(), lanes.position(0, slot));
    for (std::size_t i = 0; i < key.size(); ++i) EXPECT_NEAR(key[i], entry.rotated[i], 1e-4) << "slot " << slot;
    EXPECT_EQ(value, entry.value);
  }

  Rope rope_;
  std::mt19937 random_{7};
  MemoryAccount account_;
  LaneShape shape_;
  GrowingLanes lanes_;
  std::int32_t next_ = 0;
  std::map<std::int32_t, Entry> model_;  ///< entries with vectors, by position
  std::set<std::int32_t> merged_;        ///< positions of the others
};

TEST_P(PositionsTest, keys_are_rotated_until_an_entry_is_evicted) {
  for (int i = 0; i < 40; ++i) append();
  std::vector<LaneRun> runs;
  lanes_.runs(0, {0, 40}, runs);
  for (const auto& run : runs) EXPECT_EQ(run.rotate_to, nullptr);
  std::vector<float> key(kDim);
  lanes_.key(0, 39, key);
  EXPECT_EQ(key, model_.at(39).rotated);
  remove(3);
  EXPECT_TRUE(lanes_.is_unrotated(0));
  EXPECT_FALSE(lanes_.is_unrotated(1));
  expect_entries(lanes_);
}

/// A prompt keeps some of its entries, including the last one.
TEST_P(PositionsTest, keys_that_a_prompt_leaves_are_rotated_to_their_effective_positions) {
  constexpr int kTokens = 40;
  LayerScratch scratch(account_, ElementType::f32, shape_.kv_heads, kDim, kTokens);
  KeepPlan plan;
  plan.heads.resize(as_size(shape_.kv_heads));
  for (; next_ < kTokens; ++next_) {
    const Entry entry{row(), row()};
    const auto twice = [](std::vector<float> of_head) {
      of_head.insert(of_head.end(), of_head.begin(), of_head.begin() + kDim);
      return of_head;
    };
    scratch.extend(std::vector<std::int32_t>{next_});
    scratch.store(next_, twice(entry.rotated).data(), twice(entry.value).data());
    if (next_ % 3 != 0) continue;
    for (auto& head : plan.heads) head.push_back(next_);
    model_[next_] = entry;
  }
  ASSERT_TRUE(model_.contains(kTokens - 1));
  lanes_.commit(plan, scratch);
  ASSERT_TRUE(lanes_.is_unrotated(0));
  expect_entries(lanes_);
}

TEST_P(PositionsTest, effective_positions_follow_a_plain_model_through_random_changes) {
  for (int i = 0; i < 50; ++i) append();
  remove(slot());
  for (int step = 0; step < 300; ++step) {
    const int at = slot();
    switch (random_() % 4) {
      case 0:
        if (lanes_.length(0) > 10) remove(at);
        break;
      case 1:
        if (lanes_.merged_entries(0).of(at).count() == 0) replace(at);
        break;
      case 2:
        if (const int centre = slot(); centre != at) merge(at, centre);
        break;
      default:
        append();
    }
    if (step % 20 == 0) expect_entries(lanes_);
  }
  EXPECT_GT(lanes_.merged_entries(0).count(), 0);
  expect_entries(lanes_);
}

TEST_P(PositionsTest, lanes_are_what_they_were_when_they_are_loaded) {
  for (int i = 0; i < 90; ++i) append();
  remove(slot());
  for (int i = 0; i < 5; ++i) merge(lanes_.length(0) - 1, i);
  lanes_.state(0, 0, 7) = 0.25F;
  const std::vector<int> blocks = {lanes_.length(0) / shape_.summary_block + 1, 1};
  lanes_.summaries().allocate(blocks);
  const std::vector summaries = {row(), row()};
  for (const int head : {0, 1}) lanes_.summaries().set(head, blocks[head] - 1, summaries[head]);
  MemorySink sink;
  save(lanes_, sink);
  ASSERT_EQ(sink.bytes().size(), saved_bytes(lanes_));
  const MemorySource source(sink.bytes(), "the lanes");
  ByteCursor cursor(source, 0, source.size());
  GrowingLanes loaded(account_, shape_);
  load(loaded, cursor, next_);
  expect_entries(loaded);
  EXPECT_EQ(loaded.state(0, 0, 7), 0.25F);
  std::vector<float> got(kDim);
  for (const int head : {0, 1}) {
    const Rows rows = loaded.summaries().rows(head, blocks[head] - 1, blocks[head]);
    decode_row(rows.type, rows.row(0), got);
    EXPECT_EQ(got, summaries[head]);
  }
  ByteCursor again(source, 0, source.size());
  EXPECT_EQ(saved_lengths(again, 2), (std::vector<int>{lanes_.length(0), 0}));
}

INSTANTIATE_TEST_SUITE_P(positions, PositionsTest,
                         testing::Values(EffectivePositions::absolute, EffectivePositions::cache),
                         [](const auto& instance) {
                           return instance.param == EffectivePositions::cache ? "cache" : "absolute";
                         });

}  // namespace
}  // namespace winnow::cache
