// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "policy/fake_layer.h"

namespace winnow::test {
namespace {

using namespace reference;

/// The largest attention from the rows that repeat an entry's chunk, over the group. In the fake layer they are those
/// that follow the prompt.
std::vector<double> scores(const FakeLayer& layer, int kv_head, int chunk) {
  std::vector<double> out(z(layer.tokens()));
  const auto group = layer.group(kv_head, chunk);
  for (int j = 0; j < layer.tokens(); ++j) {
    const int rows = std::min(chunk, layer.tokens() - j / chunk * chunk);
    for (const auto& a : group) {
      for (int i = 0; i < rows; ++i) out[j] = std::max(out[j], a[layer.tokens() + i][j]);
    }
  }
  return out;
}

TEST(KVzip, keeps_what_the_reference_keeps) {
  for (const auto& [name, attention] : attentions()) {
    for (const auto& [kv_heads, group] : {std::pair{1, 1}, {2, 3}, {1, 7}}) {
      FakeLayer layer(kv_heads, group, 60, attention);
      for (const int chunk : {7, 20, 2048}) {
        for (const int sinks : {0, 4}) {
          for (const int budget : {5, 20, 59}) {
            const auto plan =
                layer.plan("kvzip:chunk=" + std::to_string(chunk) + ",sinks=" + std::to_string(sinks), budget);
            for (int head = 0; head < kv_heads; ++head) {
              const auto score = scores(layer, head, chunk);
              const auto order = ranking({score.begin() + sinks, score.end()}, sinks);
              auto want = all_of(sinks);
              want.insert(want.end(), order.begin(), order.begin() + (budget - sinks));
              EXPECT_EQ(plan.heads[head], sorted(want)) << name << " chunk " << chunk << " budget " << budget;
            }
          }
        }
      }
    }
  }
}

TEST(KVzip, every_token_is_repeated_once_after_those_before_it) {
  const auto method = Spec::parse("kvzip:chunk=50").method();
  for (const int tokens : {1, 8, 50, 51, 150, 153}) {
    int next = 0;
    for (const auto& passage : method.reading.replay.call({tokens, 3}).passages) {
      EXPECT_EQ(passage.first, next);
      EXPECT_EQ(passage.cue, std::min(8, next));
      EXPECT_LE(passage.count, 50);
      EXPECT_EQ(passage.recorded, (attention::KeyRange{next, next + passage.count}));
      next += passage.count;
    }
    EXPECT_EQ(next, tokens);
  }
}

}  // namespace
}  // namespace winnow::test
