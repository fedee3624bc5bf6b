// What holds for every method's plan.
#include <gtest/gtest.h>

#include <cmath>

#include "example_method.h"
#include "policy/fake_layer.h"
#include "policy/method.h"
#include "winnow/error.h"
#include "winnow/spec.h"

namespace winnow::test {
namespace {

TEST(Plan, full_keeps_everything) { EXPECT_TRUE(FakeLayer(1, 1, 20, random_attention(1)).plan("full", 1).keeps_all()); }

TEST(Plan, refuses_what_is_forced_already) {
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

TEST(Plan, a_method_is_added_by_a_file_and_a_line) {
  policy::Registry registry = policy::built_in();
  registry.presets.push_back(policy::methods::value_norm());
  FakeLayer layer(2, 1, 40, random_attention(1));
  const auto plan = layer.plan(Spec::parse("value-norm:recent=2", registry), 10);
  for (int head = 0; head < 2; ++head) {
    std::vector<std::pair<double, int>> lengths;
    for (int j = 0; j < 38; ++j) {
      std::vector<float> v(8);
      cache::decode_row(ElementType::f32, layer.scratch().values(head).row(j), v);
      double sum = 0;
      for (const float x : v) sum += static_cast<double>(x) * x;
      lengths.emplace_back(-sum, j);
    }
    std::sort(lengths.begin(), lengths.end());
    std::vector<std::int32_t> expected = {38, 39};
    for (std::size_t i = 0; i < 8; ++i) expected.push_back(lengths[i].second);
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(plan.heads[static_cast<std::size_t>(head)], expected);
  }
}

}  // namespace
}  // namespace winnow::test
