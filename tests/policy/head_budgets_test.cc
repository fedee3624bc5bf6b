// SPDX-License-Identifier: Apache-2.0
// Budgets of all heads of all layers at once, for methods that know them before anything has been read.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <stdexcept>

#include "policy/fake_layer.h"
#include "policy/plan.h"
#include "support/head_tables.h"
#include "winnow/error.h"
#include "winnow/policy/registry.h"
#include "winnow/policy/spread.h"

namespace winnow::test {
namespace {

using Table = std::vector<std::vector<int>>;

constexpr int kTokens = 100;
constexpr int kBudget = 40;

/// What comes with winnow, and `preset`.
policy::Registry registry_of(policy::Preset preset) {
  policy::Registry registry = policy::built_in();
  registry.presets.push_back(std::move(preset));
  return registry;
}

class HeadBudgets : public testing::Test {
 protected:
  static void SetUpTestSuite() { policy::add_method(head_tables()); }
};

/// Layers of 2, 1 and 3 KV heads.
std::vector<policy::LayerPrompt> layers() { return {{kTokens, 2, 8, 2}, {kTokens, 4, 16, 1}, {kTokens, 1, 8, 3}}; }

/// What a method with this table is told about it.
std::string complaint_about(const Table& table) {
  auto preset = head_tables();
  preset.build = [&table, build = preset.build](const policy::Options& options) {
    policy::Method method = build(options);
    method.selection.over_all_heads.call = [&table](int, auto) { return table; };
    return method;
  };
  const auto spec = Spec::parse("head-tables", registry_of(preset));
  try {
    policy::spread_over_layers(spec.method(), kBudget, layers());
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "";
}

TEST_F(HeadBudgets, each_head_of_each_layer_keeps_its_own_number) {
  const auto spec = Spec::parse("head-tables");
  const std::vector<policy::LayerPrompt> all(3, {kTokens, 2, FakeLayer::kDim, 2});
  const auto table = table_of(kBudget, all);
  const FakeLayer layer(2, 2, kTokens, random_attention(4));
  for (int l = 0; l < 3; ++l) {
    const auto plan = layer.plan(spec, kBudget, l, 3);
    for (int head = 0; head < 2; ++head) EXPECT_EQ(plan.heads[head].size(), table[l][head]) << l << ", " << head;
  }
  EXPECT_NE(table[0][0], table[0][1]);
  EXPECT_NE(table[0], table[2]);
}

TEST_F(HeadBudgets, lanes_of_a_method_that_evicts_at_every_step_keep_to_the_table) {
  const FakeLayer layer(2, 2, kTokens, random_attention(4));
  const auto table = table_of(kBudget, std::vector<policy::LayerPrompt>(2, {kTokens, 2, FakeLayer::kDim, 2}));
  FakeDecode decode(layer, "head-tables:when=step", kBudget);
  for (int i = 0; i < 30; ++i) {
    decode.step();
    for (int head = 0; head < 2; ++head) ASSERT_EQ(decode.lanes().length(head), table[0][head]);
  }
}

TEST_F(HeadBudgets, what_fits_is_kept_by_all) {
  const FakeLayer layer(2, 2, kBudget, random_attention(4));
  EXPECT_TRUE(layer.plan(Spec::parse("head-tables"), kBudget).keeps_all());
  const auto spread = policy::spread_over_layers(Spec::parse("head-tables").method(), kTokens, layers());
  for (const auto& one : spread) EXPECT_EQ(one.mean, kTokens);
}

TEST_F(HeadBudgets, numbers_that_do_not_add_up_are_told) {
  EXPECT_EQ(complaint_about({{60, 20}, {40}, {40, 30, 50}}), "");
  EXPECT_EQ(complaint_about({{60, 21}, {40}, {40, 30, 50}}),
            "head-tables: a budget of 40 over all heads was spread as 241 entries of 6 heads");
  EXPECT_EQ(complaint_about({{60, 20}, {40}}),
            "head-tables: a budget of 40 over all heads was spread as 2 layers, there are 3");
  EXPECT_EQ(complaint_about({{80}, {40}, {40, 30, 50}}),
            "head-tables: a budget of 40 over all heads was spread as 1 heads of layer 0, it has 2");
  EXPECT_EQ(complaint_about({{77, 3}, {40}, {40, 30, 50}}),
            "head-tables: a budget of 40 over all heads was spread as 3 entries of a head of layer 0, 4 to 100 are "
            "possible");
  EXPECT_EQ(complaint_about({{60, 20}, {101}, {20, 20, 19}}),
            "head-tables: a budget of 40 over all heads was spread as 101 entries of a head of layer 1, 4 to 100 are "
            "possible");
}

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST_F(HeadBudgets, nobody_else_spreads_what_the_table_has_spread) {
  const std::string own = "it gives each head of each layer a budget of its own";
  EXPECT_EQ(refusal([] { Spec::parse("ada(head-tables)"); }), "ada(head-tables) is not possible: " + own);
  EXPECT_EQ(refusal([] { Spec::parse("pyramid(head-tables)"); }), "pyramid(head-tables) is not possible: " + own);
  EXPECT_EQ(refusal([] { Spec::parse("chunk(head-tables):per=layer"); }),
            "chunk(head-tables) is not possible: per=layer keeps one set for all heads, but " + own);
}

/// What is said of a preset that has one more part.
std::string refusal_with(const std::function<void(policy::Method&)>& add) {
  auto preset = head_tables();
  preset.build = [&add, build = preset.build](const policy::Options& options) {
    policy::Method method = build(options);
    add(method);
    return method;
  };
  return refusal([&] { Spec::parse("head-tables", registry_of(preset)); });
}

TEST_F(HeadBudgets, a_method_has_one_part_that_spreads) {
  using policy::Method;
  EXPECT_EQ(refusal_with([](Method&) {}), "");
  EXPECT_EQ(refusal_with([](Method& method) { method.selection.over_layers = policy::pyramid(20); }),
            "head-tables: over_all_heads cannot be set together with over_layers");
  EXPECT_EQ(refusal_with(
                [](Method& method) { method.selection.over_heads = policy::adaptive(0.5, policy::FloorRule::blend); }),
            "head-tables: over_all_heads cannot be set together with over_heads");
  EXPECT_EQ(refusal_with([](Method& method) { method.one_set_per_layer = true; }),
            "head-tables: over_all_heads cannot be set where all heads of a layer keep one set");
}

TEST_F(HeadBudgets, chunks_fill_each_head_s_number) {
  const FakeLayer layer(2, 2, kTokens, random_attention(4));
  const auto table = table_of(kBudget, std::vector<policy::LayerPrompt>(2, {kTokens, 2, FakeLayer::kDim, 2}));
  const auto plan = layer.plan(Spec::parse("chunk(head-tables):length=5"), kBudget);
  for (int head = 0; head < 2; ++head) EXPECT_EQ(plan.heads[head].size(), table[0][head]);
}

/// A part that gives each head of a layer what the layer's index says, to see that it knows the layer.
TEST_F(HeadBudgets, a_head_budget_part_sees_its_layer) {
  auto preset = head_tables();
  preset.build = [build = preset.build](const policy::Options& options) {
    policy::Method method = build(options);
    method.selection.over_all_heads = {};
    method.selection.over_heads = {
        "by the layer", [](const policy::LayerView& view, int mean, const policy::Scores&, const policy::AlwaysKept&) {
          const int more = view.layer + view.layers + view.shape.group();
          return std::vector{mean + more, mean - more};
        }};
    return method;
  };
  const auto spec = Spec::parse("head-tables", registry_of(preset));
  const FakeLayer layer(2, 3, kTokens, random_attention(4));
  for (int l = 0; l < 4; ++l) {
    const auto plan = layer.plan(spec, kBudget, l, 4);
    EXPECT_EQ(plan.heads[0].size(), kBudget + l + 4 + 3);
    EXPECT_EQ(plan.heads[1].size(), kBudget - l - 4 - 3);
  }
}

}  // namespace
}  // namespace winnow::test
