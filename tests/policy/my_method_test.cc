// SPDX-License-Identifier: Apache-2.0
// The methods of examples/my-method, which are added from outside: kept entries, and the list of methods.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "my_methods.h"
#include "policy/fake_layer.h"
#include "winnow/error.h"
#include "winnow/methods.h"

namespace winnow::test {
namespace {

class MyMethod : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    policy::add_method(policy::with_positions(value_norm()));
    policy::add_method(policy::with_positions(attended_values()));
  }
};

double squared_length(const FakeLayer& layer, int head, int token, int kv_heads) {
  const auto row = layer.token(token);
  const auto value = row.begin() + (kv_heads + head) * FakeLayer::kDim;
  return std::inner_product(value, value + FakeLayer::kDim, value, 0.0);
}

/// The last `recent` tokens, and the best of the tokens before them.
std::vector<std::int32_t> best(const std::vector<double>& scores, int budget, int recent) {
  const int n = static_cast<int>(scores.size());
  std::vector<std::int32_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end() - recent, [&](auto a, auto b) { return scores[a] > scores[b]; });
  order.erase(order.begin() + (budget - recent), order.end() - recent);
  std::sort(order.begin(), order.end());
  return order;
}

TEST_F(MyMethod, value_norm_keeps_the_longest_values) {
  constexpr int kTokens = 40;
  FakeLayer layer(2, 1, kTokens, random_attention(1));
  const auto plan = layer.plan("value-norm:recent=2", 10);
  for (int head = 0; head < 2; ++head) {
    std::vector<double> scores;
    for (int j = 0; j < kTokens; ++j) scores.push_back(squared_length(layer, head, j, 2));
    EXPECT_EQ(plan.heads[head], best(scores, 10, 2));
  }
}

TEST_F(MyMethod, attended_values_weights_attention_by_the_values_lengths) {
  constexpr int kTokens = 60;
  constexpr int kWindow = 8;
  FakeLayer layer(2, 3, kTokens, random_attention(3));
  const auto plan = layer.plan("attended-values:window=8", 20);
  for (int head = 0; head < 2; ++head) {
    const auto group = layer.group(head);
    std::vector<double> scores(kTokens);
    for (std::size_t j = 0; j < kTokens; ++j) {
      for (const auto& attention : group) {
        for (std::size_t i = kTokens - kWindow; i < kTokens; ++i) scores[j] += attention[i][j];
      }
      scores[j] *= std::sqrt(squared_length(layer, head, static_cast<int>(j), 2));
    }
    EXPECT_EQ(plan.heads[head], best(scores, 20, kWindow));
  }
}

TEST_F(MyMethod, is_known_wherever_specs_are_read) {
  EXPECT_EQ(Spec::parse("value-norm:recent=2,positions=cache").print(), "value-norm:recent=2,positions=cache");
  EXPECT_EQ(Spec::parse_list("snapkv,ada(value-norm)")[1].print(), "ada(value-norm)");
  EXPECT_EQ(Spec::parse_endless("value-norm").print(), "value-norm");
  EXPECT_EQ(describe_method("attended-values").name, "attended-values");
  const auto methods = list_methods();
  EXPECT_EQ(methods.size(), policy::built_in().presets.size() + 2);
  EXPECT_EQ(methods.back().name, "attended-values");
}

TEST_F(MyMethod, can_be_wrapped) {
  const auto random = random_attention(4);
  FakeLayer layer(2, 2, 60, [&](int h, int i, int j) { return (h < 2 ? 1 : 0.1) * random(h, i, j); });
  const auto plan = layer.plan("ada(attended-values:window=8)", 20);
  EXPECT_EQ(plan.heads[0].size() + plan.heads[1].size(), 40U);
  EXPECT_GT(plan.heads[0].size(), plan.heads[1].size()) << "the first KV head needs more";
}

TEST_F(MyMethod, needs_a_name_of_its_own) {
  const auto refusal_of = [](const std::string& name) -> std::string {
    auto preset = value_norm();
    preset.name = name;
    try {
      policy::add_method(std::move(preset));
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  for (const char* name : {"value-norm", "snapkv", "ada"}) {
    EXPECT_NE(refusal_of(name).find("already"), std::string::npos) << name;
  }
  for (const char* name : {"", "Mine", "a(b)", "x:y", "x,y", "x y", "\x1b"}) {
    EXPECT_NE(refusal_of(name).find("cannot be called"), std::string::npos) << name;
  }
  EXPECT_EQ(list_methods().size(), policy::built_in().presets.size() + 2);
}

}  // namespace
}  // namespace winnow::test
