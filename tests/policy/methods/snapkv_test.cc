// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "policy/fake_layer.h"
#include "winnow/budget_error.h"
#include "winnow/error.h"

namespace winnow::test {
namespace {

using namespace reference;

std::vector<std::int32_t> snapkv(const std::vector<Matrix>& group, int budget, int window, int kernel,
                                 const std::string& pool, const std::string& pad, const std::string& gqa) {
  const int n = static_cast<int>(group.front().size());
  if (n <= budget) return all_of(n);
  std::vector<std::vector<double>> sums;
  for (const auto& a : group) sums.push_back(column_sums(a, n - window, n, n - window));
  const auto order = ranking(pooled(combined(sums, gqa), kernel, pool, pad));
  std::vector<std::int32_t> kept(order.begin(), order.begin() + (budget - window));
  for (int j = n - window; j < n; ++j) kept.push_back(j);
  return sorted(kept);
}

TEST(SnapKv, keeps_what_the_reference_keeps) {
  const std::vector<std::pair<int, int>> heads = {{1, 1}, {2, 3}, {1, 7}};
  for (const auto& [name, attention] : attentions()) {
    for (const auto& [kv_heads, group] : heads) {
      constexpr int kTokens = 90;
      FakeLayer layer(kv_heads, group, kTokens, attention);
      for (const int budget : {9, 10, 33, 60, 89, 90, 91}) {
        for (const auto& [pool, pad, gqa, kernel] : {std::tuple{"max", "valid", "mean", 7},
                                                     {"mean", "valid", "max", 5},
                                                     {"mean", "count", "sum", 3},
                                                     {"max", "valid", "sum", 1}}) {
          const auto spec = std::string("snapkv:window=8,kernel=") + std::to_string(kernel) + ",pool=" + pool +
                            ",pad=" + pad + ",gqa=" + gqa;
          const auto plan = layer.plan(spec, budget);
          for (int head = 0; head < kv_heads; ++head) {
            EXPECT_EQ(kept(plan, head, kTokens), snapkv(layer.group(head), budget, 8, kernel, pool, pad, gqa))
                << name << " " << spec << " budget " << budget << " head " << head;
          }
        }
      }
    }
  }
}

TEST(SnapKv, the_window_is_at_most_its_share_of_the_prompt) {
  constexpr int kTokens = 90;
  const FakeLayer layer(1, 3, kTokens, random_attention(7));
  for (const auto& [percent, window] : {std::pair{1, 1}, {2, 1}, {5, 4}, {10, 9}, {50, 32}, {100, 32}}) {
    const auto spec = "snapkv:window-share=" + std::to_string(percent);
    for (const int budget : {window + 1, window + 20}) {
      EXPECT_EQ(kept(layer.plan(spec, budget), 0, kTokens),
                snapkv(layer.group(0), budget, window, 7, "max", "valid", "mean"))
          << spec << " budget " << budget;
    }
    EXPECT_THROW(layer.plan(spec, window), BudgetError) << spec;
  }
}

/// Sum or maximum over the window's rows for each key. If `weighted`, a row is multiplied by the number of keys that it
/// sees.
std::vector<double> over_rows(const Matrix& a, int window, const std::string& rows, bool weighted) {
  const int n = static_cast<int>(a.size());
  std::vector<double> out(z(n - window));
  for (int i = n - window; i < n; ++i) {
    for (int j = 0; j < n - window; ++j) {
      const double x = a[z(i)][z(j)] * (weighted ? i + 1 : 1);
      out[z(j)] = rows == "max" ? std::max(out[z(j)], x) : out[z(j)] + x;
    }
  }
  return out;
}

std::vector<std::int32_t> best_over_rows(const std::vector<Matrix>& group, int budget, int window,
                                         const std::string& rows, bool weighted) {
  const int n = static_cast<int>(group.front().size());
  std::vector<std::vector<double>> of_heads;
  for (const auto& a : group) of_heads.push_back(over_rows(a, window, rows, weighted));
  const auto order = ranking(combined(of_heads, "max"));
  std::vector<std::int32_t> kept(order.begin(), order.begin() + (budget - window));
  for (int j = n - window; j < n; ++j) kept.push_back(j);
  return sorted(kept);
}

TEST(SnapKv, combines_the_rows_as_the_reference_does) {
  constexpr int kTokens = 64;  // weights are exact
  for (const auto& [name, attention] : attentions()) {
    FakeLayer layer(2, 3, kTokens, attention);
    for (const std::string rows : {"sum", "max"}) {
      for (const bool weighted : {false, true}) {
        const auto spec = "snapkv:window=8,kernel=1,gqa=max,rows=" + rows + (weighted ? ",weights=keys" : "");
        for (const int budget : {9, 30, 63}) {
          const auto plan = layer.plan(spec, budget);
          for (int head = 0; head < 2; ++head) {
            EXPECT_EQ(kept(plan, head, kTokens), best_over_rows(layer.group(head), budget, 8, rows, weighted))
                << name << " " << spec << " budget " << budget;
          }
        }
      }
    }
  }
}

TEST(Finch, keeps_what_the_question_attends_to) {
  constexpr int kTokens = 64;
  for (const auto& [name, attention] : attentions()) {
    FakeLayer layer(2, 3, kTokens, attention);
    layer.question = 12;
    for (const auto& [budget, last] :
         {std::pair{30, 12}, {24, 12}, {16, 8}, {3, 1}, {63, 12}}) {  // the window is at most half of the budget
      const auto plan = layer.plan("finch:gqa=max", budget);
      for (int head = 0; head < 2; ++head) {
        EXPECT_EQ(kept(plan, head, kTokens), best_over_rows(layer.group(head), budget, last, "sum", true))
            << name << " budget " << budget;
      }
    }
    layer.question = 0;  // unknown: the last 32 tokens
    EXPECT_EQ(kept(layer.plan("finch:gqa=max", 40), 0, kTokens), best_over_rows(layer.group(0), 40, 20, "sum", true));
    EXPECT_EQ(layer.plan("finch", kTokens).heads.size(), 0U);
    EXPECT_EQ(layer.plan("finch", 1).heads[0].size(), 1U);
    layer.question = 12;
    EXPECT_EQ(kept(layer.plan("finch:gqa=max,window-share=10", 40), 0, kTokens),
              best_over_rows(layer.group(0), 40, 6, "sum", true));
    for (const auto& [budget, last] : {std::pair{30, 7}, {63, 12}, {12, 3}}) {
      EXPECT_EQ(kept(layer.plan("finch:gqa=max,question-share=25", budget), 0, kTokens),
                best_over_rows(layer.group(0), budget, last, "sum", true))
          << budget;
    }
  }
}

TEST(Finch, is_snapkv_with_its_parameters) {
  const auto finch = Spec::parse("finch").print_full();
  for (const char* option : {"window=question", "kernel=1", "weights=keys", "positions=cache", "gqa=mean", "rows=sum"})
    EXPECT_NE(finch.find(option), std::string::npos) << option;
  EXPECT_THROW(Spec::parse("snapkv:window=answer"), UsageError);
}

TEST(SnapKv, permuting_heads_permutes_the_result) {
  const auto table = [](int h, int i, int j) { return std::fmod(0.137 * (h + 1) * (i + 3) * (j + 7), 0.02); };
  FakeLayer straight(3, 2, 70, table);
  FakeLayer swapped(3, 2, 70, [&](int h, int i, int j) { return table((h + 2) % 6, i, j); });
  const auto a = straight.plan("snapkv:window=8", 30);
  const auto b = swapped.plan("snapkv:window=8", 30);
  for (std::size_t head = 0; head < 3; ++head) EXPECT_EQ(b.heads[head], a.heads[(head + 1) % 3]);
}

}  // namespace
}  // namespace winnow::test
