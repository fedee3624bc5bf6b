// SPDX-License-Identifier: Apache-2.0
// Tests of parts that spread a layer's budget over its heads.
#include <gtest/gtest.h>

#include "policy/fake_layer.h"
#include "winnow/policy/registry.h"

namespace winnow::test {
namespace {

/// The part's result depends on the layer's index, which shows that it is called with the right layer.
TEST(HeadBudgets, of_a_part_follow_from_its_layer) {
  constexpr int kTokens = 100;
  constexpr int kBudget = 40;
  policy::Preset preset;
  preset.name = "by-the-layer";
  preset.build = [](const policy::Options&) {
    policy::Method method = Spec::parse("knorm").method();
    method.selection.over_heads = {
        "by the layer", [](const policy::LayerView& view, int mean, const policy::Scores&, const policy::AlwaysKept&) {
          const int more = view.layer + view.layers + view.shape.group();
          return std::vector{mean + more, mean - more};
        }};
    return method;
  };
  policy::Registry registry = policy::built_in();
  registry.presets.push_back(std::move(preset));
  const auto spec = Spec::parse("by-the-layer", registry);
  const FakeLayer layer(2, 3, kTokens, random_attention(4));
  for (int l = 0; l < 4; ++l) {
    const auto plan = layer.plan(spec, kBudget, l, 4);
    EXPECT_EQ(plan.heads[0].size(), kBudget + l + 4 + 3);
    EXPECT_EQ(plan.heads[1].size(), kBudget - l - 4 - 3);
  }
}

}  // namespace
}  // namespace winnow::test
