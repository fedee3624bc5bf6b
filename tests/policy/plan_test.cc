// SPDX-License-Identifier: Apache-2.0
// Properties of every method's plan.
#include "policy/plan.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/memory.h"
#include "policy/fake_layer.h"
#include "policy/views.h"
#include "winnow/error.h"
#include "winnow/spec.h"

namespace winnow::test {
namespace {

TEST(Plan, full_keeps_everything) { EXPECT_TRUE(FakeLayer(1, 1, 20, random_attention(1)).plan("full", 1).keeps_all()); }

TEST(Plan, refuses_what_is_always_kept_already) {
  FakeLayer layer(1, 1, 90, random_attention(1));
  for (const auto& [spec, budget] : {std::pair{"snapkv", 32}, {"streaming-llm", 4}, {"streaming-llm:sinks=100", 50}}) {
    try {
      layer.plan(spec, budget);
      ADD_FAILURE() << spec;
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find(std::to_string(budget)), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("at least"), std::string::npos) << error.what();
    }
  }
}

/// The methods tested have scores that need work space.
TEST(Plan, takes_the_bytes_that_were_foretold) {
  constexpr int kTokens = 700;
  constexpr int kBudget = 100;
  constexpr int kHeads = 2;
  const FakeLayer layer(kHeads, 2, kTokens, random_attention(1));
  for (const char* text : {"compactor", "r-kv:when=prefill", "kvzip(snapkv)"}) {
    const Spec spec = Spec::parse(text);
    MemoryAccount account;
    layer.look(spec.method(), kBudget, 0, 1, [&](const policy::LayerView& view) {
      const CountingScope scope(account);
      (void)policy::plan(spec.method(), view, kBudget, {kBudget, {}});
    });
    const auto foretold = policy::plan_bytes(spec.method(), layer.shape(), kTokens, kHeads * kBudget);
    EXPECT_LE(account.peak(), foretold) << text;
    EXPECT_GE(static_cast<double>(account.peak()), 0.9 * static_cast<double>(foretold)) << text;
  }
}

}  // namespace
}  // namespace winnow::test
