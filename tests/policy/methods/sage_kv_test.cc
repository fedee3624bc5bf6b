#include <gtest/gtest.h>

#include "policy/fake_layer.h"

namespace winnow::test {
namespace {

using namespace reference;

struct Sizes {
  int sinks;
  int k;
  int recent;  ///< the last token among them
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

/// What one KV head keeps of the prompt.
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
      if (!has(order[z(i)])) out.push_back(order[z(i)]);
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

TEST(SageKv, refresh_selects_anew_from_everything) {
  constexpr int kBudget = 40;
  constexpr int kEvery = 16;
  FakeLayer layer(2, 3, 90, random_attention(1));
  FakeDecode decode(layer, "sage-kv:refresh=16", kBudget);
  const auto s = sizes(kBudget, 3, true);
  auto selected = at_once(layer.group(1), kBudget, s);
  selected = {selected.begin() + s.sinks, selected.end() - s.recent};
  for (int t = 1; t <= 100; ++t) {
    decode.enter();
    const int length = 90 + t;
    ASSERT_EQ(decode.lanes().length(1), length);
    const auto plan = decode.plans(0)[1];
    if (t % kEvery == 0) {
      EXPECT_TRUE(plan.empty()) << "the refreshing query reads everything";
      auto rows = layer.group(1, t);
      for (auto& a : rows) a.resize(z(length));
      selected = at_once(rows, kBudget, s);
      selected = {selected.begin() + s.sinks, selected.end() - s.recent};
    } else {
      std::vector<std::int32_t> slots;
      for (const auto& range : plan) {
        for (auto j = range.begin; j < range.end; ++j) slots.push_back(j);
      }
      auto expected = selected;
      for (int j = 0; j < s.sinks; ++j) expected.push_back(j);
      for (int j = length - s.recent; j < length; ++j) expected.push_back(j);
      ASSERT_EQ(slots, sorted(expected)) << "token " << t;
      EXPECT_EQ(static_cast<int>(slots.size()), kBudget);
    }
    decode.follow();
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
