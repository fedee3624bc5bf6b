// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "policy/fake_layer.h"

namespace winnow::test {
namespace {

using namespace reference;

/// Keys with the most attention of a row, averaged over all heads of the layer, and the row's own token.
std::vector<std::int32_t> best(const std::vector<Matrix>& heads, int row, std::vector<std::int32_t> among, int budget) {
  if (static_cast<int>(among.size()) <= budget) return among;
  const auto mean = [&](std::int32_t j) {
    double sum = 0;
    for (const auto& a : heads) sum += a[row][j];
    return sum / static_cast<double>(heads.size());
  };
  among.pop_back();
  std::sort(among.begin(), among.end(),
            [&](std::int32_t a, std::int32_t b) { return mean(a) != mean(b) ? mean(a) > mean(b) : a > b; });
  among.resize(z(budget - 1));
  among.push_back(row);
  return sorted(among);
}

TEST(Tova, keeps_what_the_reference_keeps_for_200_steps) {
  constexpr int kTokens = 60;
  constexpr int kSteps = 200;
  for (const auto& [name, attention] : attentions()) {
    for (const auto& [kv_heads, group] : {std::pair{1, 1}, {2, 2}, {1, 7}}) {
      FakeLayer layer(kv_heads, group, kTokens, attention);
      std::vector<Matrix> heads;
      for (int head = 0; head < kv_heads; ++head) {
        for (auto& a : layer.group(head, kSteps)) heads.push_back(std::move(a));
      }
      for (const int budget : {2, 7, 59, 60, 61, 100}) {
        FakeDecode decode(layer, "tova", budget);
        auto expected = best(heads, kTokens - 1, all_of(kTokens), budget);
        for (int i = 0; i < kSteps; ++i) {
          for (int head = 0; head < kv_heads; ++head)
            ASSERT_EQ(decode.kept(head), expected) << name << " budget " << budget << " step " << i;
          expected.push_back(decode.position());
          expected = best(heads, decode.position(), expected, budget);
          decode.step();
        }
      }
    }
  }
}

}  // namespace
}  // namespace winnow::test
