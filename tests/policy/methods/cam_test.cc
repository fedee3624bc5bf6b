// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>

#include "policy/counter_random.h"
#include "policy/fake_layer.h"

namespace winnow::test {
namespace {

using namespace reference;

/// One KV head: kept positions with their received attention and values.
struct Reference {
  struct Entry {
    double received;
    std::vector<double> value;
  };

  Reference(const FakeLayer& layer, int head, int budget, bool streaming, bool by_newest, int more)
      : layer_(layer),
        head_(head),
        group_(layer.group(head, more)),
        budget_(budget),
        streaming_(streaming),
        by_newest_(by_newest),
        last_(layer.tokens() - 1) {
    const int n = layer.tokens();
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (const auto& a : group_) sum += column_sums(a, 0, n, n)[j] / static_cast<double>(group_.size());
      entries_[j] = {sum, value_of(j)};
    }
    if (n <= budget) return;
    // All evicted entries are merged into kept ones. The values merged are the original ones.
    std::map<int, Entry> kept;
    std::vector<double> evictable;
    for (int j = sinks(); j < n - recent(); ++j) evictable.push_back(streaming ? j : entries_[j].received);
    const auto order = ranking(evictable, sinks());
    for (int i = 0; i < budget - sinks() - recent(); ++i) kept[order[i]] = entries_[order[i]];
    for (int j = 0; j < sinks(); ++j) kept[j] = entries_[j];
    for (int j = n - recent(); j < n; ++j) kept[j] = entries_[j];
    const double mean = recent_mean(entries_);
    for (const auto& [j, entry] : entries_) {
      if (!kept.contains(j)) spread(j, entry, mean, kept);
    }
    entries_ = kept;
  }

  void append() {
    ++last_;
    entries_[last_] = {0, value_of(last_)};
  }

  void step() {
    append();
    for (auto& [j, entry] : entries_) {
      for (const auto& a : group_) entry.received += a[last_][j] / static_cast<double>(group_.size());
    }
    if (static_cast<int>(entries_.size()) <= budget_) return;
    int victim = -1;
    for (const auto& [j, entry] : entries_) {
      if (j < sinks() || j > last_ - recent()) continue;
      if (victim < 0 || (!streaming_ && entry.received < entries_[victim].received)) victim = j;
    }
    auto drawn = entries_;  // attention by which the merges are drawn
    for (auto& [j, entry] : drawn) entry.received = by_newest_ ? of_newest(j) : entry.received;
    const auto gone = drawn[victim];
    const double mean = recent_mean(drawn);
    entries_.erase(victim);
    spread(victim, gone, mean, entries_);
  }

  void spread(int j, const Entry& gone, double mean, std::map<int, Entry>& into) const {
    if (!(policy::uniform_at(0, 0, head_, j) < gone.received / mean)) return;
    int left = recent();
    for (auto it = into.upper_bound(j); it != into.end() && left > 0; ++it, --left) {
      for (std::size_t c = 0; c < gone.value.size(); ++c) it->second.value[c] += gone.value[c] / recent();
    }
  }
  /// Attention of the newest token to one entry, averaged over the group.
  double of_newest(int j) const {
    double sum = 0;
    for (const auto& a : group_) sum += a[last_][j];
    return sum / static_cast<double>(group_.size());
  }
  double recent_mean(const std::map<int, Entry>& entries) const {
    double sum = 0;
    for (const auto& [j, entry] : entries) sum += j > last_ - recent() ? entry.received : 0;
    return sum / recent();
  }
  int sinks() const { return streaming_ ? 4 : 0; }
  int recent() const { return streaming_ ? budget_ - 4 : budget_ / 2; }
  std::vector<double> value_of(int j) const {
    const auto row = layer_.token(j);
    const auto at = row.begin() + static_cast<std::ptrdiff_t>(row.size() / 2) + head_ * FakeLayer::kDim;
    return {at, at + FakeLayer::kDim};
  }

  const FakeLayer& layer_;
  int head_;
  std::vector<Matrix> group_;
  int budget_;
  bool streaming_;
  bool by_newest_;
  int last_;
  std::map<int, Entry> entries_;
};

/// Values may differ by the rounding of sums of at most 260 values in f32.
void expect_same(const FakeDecode& decode, const Reference& expected, const std::string& what) {
  std::vector<std::int32_t> positions;
  for (const auto& [j, entry] : expected.entries_) positions.push_back(j);
  ASSERT_EQ(decode.kept(1), positions) << what;
  std::vector<float> value(FakeLayer::kDim);
  for (int slot = 0; slot < decode.lanes().length(1); ++slot) {
    decode.lanes().value(1, slot, value);
    const auto& want = expected.entries_.at(decode.lanes().position(1, slot)).value;
    for (std::size_t c = 0; c < value.size(); ++c)
      ASSERT_NEAR(value[c], want[c], 260 * 0x1p-24 * 16) << what << " slot " << slot;
  }
}

TEST(Cam, keeps_and_merges_what_the_reference_does_for_200_steps) {
  struct Case {
    std::string spec;
    bool streaming;
    bool by_newest;
  };
  for (const auto& [spec, streaming, by_newest] : {Case{"cam:prompt=merge", false, true},
                                                   {"cam:select=streaming,prompt=merge", true, true},
                                                   {"cam:drawn=received,prompt=merge", false, false},
                                                   {"cam:select=streaming,drawn=received,prompt=merge", true, false}}) {
    for (const int budget : {8, 31, 59, 60, 90}) {
      FakeLayer layer(2, 2, 60, random_attention(4));
      FakeDecode decode(layer, spec, budget);
      Reference expected(layer, 1, budget, streaming, by_newest, 200);
      for (int i = 0; i <= 200; ++i) {
        expect_same(decode, expected, spec + ", budget " + std::to_string(budget) + " step " + std::to_string(i));
        if (HasFatalFailure()) return;
        if (i == 200) break;
        decode.step();
        expected.step();
      }
    }
  }
}

TEST(Cam, after_prefill_alone_merges_the_prompt_and_nothing_more) {
  for (const bool streaming : {false, true}) {
    const std::string spec = std::string("cam:when=prefill,prompt=merge,select=") + (streaming ? "streaming" : "h2o");
    for (const int budget : {8, 31, 59, 60, 90}) {
      FakeLayer layer(2, 2, 60, random_attention(4));
      FakeDecode decode(layer, spec, budget);
      Reference expected(layer, 1, budget, streaming, true, 200);
      for (int i = 0; i <= 100; ++i) {
        expect_same(decode, expected, spec + ", budget " + std::to_string(budget) + " step " + std::to_string(i));
        if (HasFatalFailure()) return;
        decode.step();
        expected.append();
      }
    }
  }
}

TEST(Cam, after_prefill_alone_and_with_all_dropped_is_h2o) {
  FakeLayer layer(2, 2, 60, random_attention(4));
  for (const int budget : {8, 31, 59}) {
    const auto cam = layer.plan("cam:when=prefill", budget);
    EXPECT_EQ(cam.heads, layer.plan("h2o:when=prefill", budget).heads);
    EXPECT_TRUE(cam.values.empty());
  }
}

TEST(Cam, merges_what_has_received_as_much_as_the_recent_ones_for_sure) {
  // All entries have received equal attention, so each evicted entry is merged. The sum of values loses only the shares
  // of places beyond the end.
  FakeLayer layer(1, 1, 40, [](int, int i, int j) { return 0.5 / (40 - j) + 0 * i; });
  const auto plan = layer.plan("cam:select=streaming,m=1,prompt=merge", 20);
  std::vector<double> sum(FakeLayer::kDim);
  for (int j = 0; j < 40; ++j) {
    const auto row = layer.token(j);
    for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += row[row.size() / 2 + c];
  }
  for (std::size_t i = 0; i < plan.values[0].size(); ++i) sum[i % sum.size()] -= plan.values[0][i];
  for (const double left : sum) EXPECT_NEAR(left, 0, 1e-4);
}

}  // namespace
}  // namespace winnow::test
