// SPDX-License-Identifier: Apache-2.0
// The heads of a layer may take a step at the same time. Also run under the thread sanitizer.
#include <gtest/gtest.h>

#include "policy/fake_layer.h"
#include "winnow/methods.h"

namespace winnow::test {
namespace {

using Table = std::vector<std::vector<std::pair<std::int32_t, std::vector<float>>>>;

/// Positions and values of all entries, [head].
Table table_of(const cache::LayerLanes& lanes, int heads) {
  Table out;
  for (int head = 0; head < heads; ++head) {
    auto& lane = out.emplace_back();
    for (int slot = 0; slot < lanes.length(head); ++slot) {
      std::vector<float> value(FakeLayer::kDim);
      lanes.value(head, slot, value);
      lane.emplace_back(lanes.position(head, slot), value);
    }
    for (const auto position : lanes.merged_entries(head).positions())
      lane.emplace_back(position, std::vector<float>());
  }
  return out;
}

TEST(Step, heads_do_not_disturb_each_other) {
  const FakeLayer layer(3, 2, 90, random_attention(3));
  for (const auto& method : list_methods()) {
    const auto parts = Spec::parse(method.name).method();
    if (!parts.decoding.step) continue;
    const std::string name = method.name + (parts.decoding.buffer > 1 ? ":buffer=8" : "");
    for (const std::string& spec : {name, name + (name == method.name ? ":" : ",") + "positions=cache"}) {
      if (parts.retrieves && spec != name) continue;
      FakeDecode together(layer, spec, 70);
      FakeDecode apart(layer, spec, 70);
      for (int i = 0; i < 60; ++i) {
        together.step();
        apart.step(FakeDecode::Heads::in_threads);
      }
      EXPECT_EQ(table_of(apart.lanes(), 3), table_of(together.lanes(), 3)) << spec;
    }
  }
}

}  // namespace
}  // namespace winnow::test
