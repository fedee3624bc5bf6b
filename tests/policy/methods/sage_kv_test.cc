// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "policy/fake_layer.h"

namespace winnow::test {
namespace {

using namespace reference;

struct Sizes {
  int sinks;
  int k;
  int recent;  ///< includes the last token
};

Sizes sizes(int budget, int group, bool power) {
  const int sinks = budget / 4;
  int k = budget / (2 * group);
  for (int p = 1; power; p *= 2) {
    if (2 * p > k) {
      k = p;
      break;
    }
  }
  return {sinks, k, budget - sinks - group * k};
}

/// Entries of the prompt that one KV head keeps.
std::vector<std::int32_t> at_once(const std::vector<Matrix>& group, int budget, const Sizes& s) {
  const int n = static_cast<int>(group.front().size());
  if (n <= budget) return all_of(n);
  std::vector<std::int32_t> out;
  const auto has = [&](std::int32_t j) { return std::find(out.begin(), out.end(), j) != out.end(); };
  std::vector<std::vector<double>> rows;
  for (const auto& a : group) {
    rows.emplace_back(a.back().begin() + s.sinks, a.back().end() - s.recent);
    const auto order = ranking(rows.back(), s.sinks);
    for (int i = 0; i < s.k; ++i) {
      if (!has(order[i])) out.push_back(order[i]);
    }
  }
  for (const auto j : ranking(combined(rows, "max"), s.sinks)) {
    if (static_cast<int>(out.size()) < s.k * static_cast<int>(group.size()) && !has(j)) out.push_back(j);
  }
  for (int j = 0; j < s.sinks; ++j) out.push_back(j);
  for (int j = n - s.recent; j < n; ++j) out.push_back(j);
  return sorted(out);
}

TEST(SageKv, keeps_what_the_reference_keeps) {
  for (const auto& [name, attention] : attentions()) {
    for (const auto& [kv_heads, group] : {std::pair{1, 1}, {2, 3}, {1, 7}}) {
      FakeLayer layer(kv_heads, group, 90, attention);
      for (const int budget : {14, 15, 33, 60, 89, 90}) {
        for (const bool power : {true, false}) {
          const auto plan = layer.plan(power ? "sage-kv" : "sage-kv:round=floor", budget);
          for (int head = 0; head < kv_heads; ++head) {
            EXPECT_EQ(kept(plan, head, 90), at_once(layer.group(head), budget, sizes(budget, group, power)))
                << name << " " << budget << " " << group;
          }
        }
      }
    }
  }
}

TEST(SageKv, sizes_are_the_papers) {
  EXPECT_EQ(sizes(8192, 7, true).k, 512);
  EXPECT_EQ(sizes(8192, 4, true).k, 1024);
}

TEST(SageKv, slides_the_recent_window_for_200_steps) {
  for (const int budget : {14, 40, 100}) {
    FakeLayer layer(2, 3, 90, random_attention(1));
    FakeDecode decode(layer, "sage-kv", budget);
    auto s = sizes(budget, 3, true);
    auto expected = at_once(layer.group(1), budget, s);
    std::vector<std::int32_t> stays(expected.begin(), expected.end() - (budget < 90 ? s.recent : 90 - s.sinks));
    for (int i = 0; i < 200; ++i) {
      ASSERT_EQ(decode.kept(1), expected) << budget << " step " << i;
      expected.push_back(decode.position());
      if (static_cast<int>(expected.size()) > budget) {
        const auto oldest = std::find_if(expected.begin(), expected.end(), [&](auto j) {
          return std::find(stays.begin(), stays.end(), j) == stays.end();
        });
        expected.erase(oldest);
      }
      decode.step();
    }
  }
}

/// Entries that the middle of a lane keeps, by the last row of the group's attention, which sees all entries of the
/// lane.
std::vector<std::int32_t> picked(const std::vector<Matrix>& group, int budget, const Sizes& s) {
  const auto whole = at_once(group, budget, s);
  return {whole.begin() + s.sinks, whole.end() - s.recent};
}

/// Checks the entries read by each query while all entries are kept. A new selection is made `every` generated tokens
/// after the last one, or when one is first needed.
void follow_refresh(int tokens, int budget, int every) {
  const FakeLayer layer(2, 3, tokens, random_attention(1));
  FakeDecode decode(layer, "sage-kv:refresh=" + std::to_string(every), budget);
  const auto s = sizes(budget, 3, true);
  std::optional<std::vector<std::int32_t>> selected;
  if (tokens > budget) selected = picked(layer.group(1), budget, s);
  for (int t = 1; t <= 3 * every; ++t) {
    decode.enter();
    const int length = tokens + t;
    auto expected = all_of(length);
    if (length > budget && (!selected || t % every == 0)) {
      selected = picked(layer.group(1, t), budget, s);
    } else if (length > budget) {
      expected = *selected;
      for (int j = 0; j < s.sinks; ++j) expected.push_back(j);
      for (int j = length - s.recent; j < length; ++j) expected.push_back(j);
    }
    ASSERT_EQ(decode.kept(1), all_of(length));
    ASSERT_EQ(decode.read(0, 1), sorted(expected))
        << tokens << " of " << budget << ", every " << every << ": token " << t;
    decode.finish_step();
  }
}

TEST(SageKv, refresh_reads_what_the_reference_reads_for_three_rounds) {
  constexpr int kBudget = 40;
  for (const int tokens : {1, 20, 30, 38, 39, 40, 41, 90}) {
    for (const int every : {1, 7, 11, 16, 50}) follow_refresh(tokens, kBudget, every);
  }
}

TEST(SageKv, needs_a_pick_for_each_query_head) {
  const auto least = [](const char* spec, int group) {
    return policy::least_budget(Spec::parse(spec).method(), {1000, group});
  };
  EXPECT_EQ(least("sage-kv", 1), 2);       // no sink, one pick, the last token
  EXPECT_EQ(least("sage-kv", 7), 14);      // 3 sinks, 7 picks, 4 recent
  EXPECT_EQ(least("sage-kv:k=4", 3), 17);  // 4 sinks, 12 picks, the last token
}

}  // namespace
}  // namespace winnow::test
