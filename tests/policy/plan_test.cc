// SPDX-License-Identifier: Apache-2.0
// What holds for every method's plan.
#include <gtest/gtest.h>

#include <cmath>

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

}  // namespace
}  // namespace winnow::test
