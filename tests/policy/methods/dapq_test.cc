// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "policy/fake_layer.h"
#include "policy/replay_of.h"
#include "winnow/error.h"

namespace winnow::test {
namespace {

using namespace reference;

/// Always kept entries, and the best by the largest attention from the rows that follow the prompt, pooled.
std::vector<std::int32_t> dapq(const std::vector<Matrix>& group, int n, int budget, int queries, int recent, int kernel,
                               const std::string& pool, const std::string& gqa) {
  if (n <= budget) return all_of(n);
  std::vector<std::vector<double>> largest;
  for (const auto& a : group) {
    auto& row = largest.emplace_back(z(n - recent));
    for (int j = 0; j < n - recent; ++j) {
      for (int i = n; i < n + std::min(queries, n); ++i) row[j] = std::max(row[j], a[i][j]);
    }
  }
  const auto order = ranking(pooled(combined(largest, gqa), kernel, pool, "valid"));
  std::vector<std::int32_t> kept(order.begin(), order.begin() + (budget - recent));
  for (int j = n - recent; j < n; ++j) kept.push_back(j);
  return sorted(kept);
}

TEST(DapQ, keeps_what_the_reference_keeps) {
  constexpr int kTokens = 70;
  for (const auto& [name, attention] : attentions()) {
    for (const auto& [kv_heads, group] : {std::pair{1, 1}, {2, 3}, {1, 7}}) {
      const FakeLayer layer(kv_heads, group, kTokens, attention);
      for (const auto& [queries, recent, kernel, pool, gqa] :
           {std::tuple{16, 8, 7, "max", "mean"}, {8, 0, 1, "max", "max"}, {100, 4, 5, "mean", "sum"}}) {
        const auto spec = "dapq:queries=" + std::to_string(queries) + ",recent=" + std::to_string(recent) +
                          ",kernel=" + std::to_string(kernel) + ",pool=" + pool + ",gqa=" + gqa;
        for (const int budget : {recent + 1, 33, 69, 70}) {
          const auto plan = layer.plan(spec, budget);
          for (int head = 0; head < kv_heads; ++head) {
            const auto want = dapq(layer.group(head, 70), kTokens, budget, queries, recent, kernel, pool, gqa);
            EXPECT_EQ(kept(plan, head, kTokens), want) << name << " " << spec << " budget " << budget;
          }
        }
      }
    }
  }
}

TEST(DapQ, reads_the_last_tokens_again_and_records_the_whole_prompt) {
  for (const auto& [tokens, count] : {std::pair{100, 16}, {16, 16}, {5, 5}}) {
    const auto replay = replay_of(Spec::parse("dapq").method(), tokens, 3, 1);
    ASSERT_EQ(replay.passages.size(), 1U);
    EXPECT_EQ(replay.passages[0], (policy::Passage{.first = tokens - count, .count = count}));
    EXPECT_EQ(replay.reduction, attention::Reduction::max);
  }
}

TEST(DapQ, refuses_bad_options) {
  for (const char* spec : {"dapq:queries=0", "dapq:kernel=4", "dapq:recent=-1", "dapq:window=8"})
    EXPECT_THROW(Spec::parse(spec), UsageError) << spec;
}

}  // namespace
}  // namespace winnow::test
