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

}  // namespace
}  // namespace winnow::test
