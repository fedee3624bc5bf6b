// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "policy/fake_layer.h"

namespace winnow::test {
namespace {

using namespace reference;

/// The first `sinks` and the last of the budget.
std::vector<std::int32_t> streaming(int n, int budget, int sinks) {
  std::vector<std::int32_t> kept;
  for (int j = 0; j < n; ++j) {
    if (n <= budget || j < sinks || j >= n - (budget - sinks)) kept.push_back(j);
  }
  return kept;
}

TEST(StreamingLlm, keeps_what_the_reference_keeps) {
  FakeLayer layer(2, 1, 50, random_attention(1));
  for (const int budget : {5, 6, 20, 49, 50, 51}) {
    EXPECT_EQ(kept(layer.plan("streaming-llm", budget), 1, 50), streaming(50, budget, 4)) << budget;
    if (budget <= 12) continue;
    EXPECT_EQ(kept(layer.plan("streaming-llm:sinks=12", budget), 0, 50), streaming(50, budget, 12)) << budget;
  }
}

TEST(StreamingLlm, after_prefill_alone_nothing_leaves_any_more) {
  FakeLayer layer(2, 1, 50, random_attention(1));
  for (const char* positions : {"absolute", "cache"}) {
    const auto spec = std::string("streaming-llm:when=prefill,positions=") + positions;
    for (const int budget : {5, 20, 49, 50, 60}) {
      FakeDecode decode(layer, spec, budget);
      auto expected = streaming(50, budget, 4);
      for (int i = 0; i < 80; ++i) {
        ASSERT_EQ(decode.kept(1), expected) << spec << " budget " << budget << " step " << i;
        expected.push_back(50 + i);
        decode.step();
      }
    }
  }
  // What is no longer a row of neighbours is ranked by the lane, not by the distance to the first tokens alone.
  EXPECT_EQ(Spec::parse("streaming-llm:when=prefill").method().positions, policy::Positions::cache);
  EXPECT_EQ(Spec::parse("streaming-llm:when=prefill,positions=absolute").method().positions,
            policy::Positions::absolute);
}

}  // namespace
}  // namespace winnow::test
