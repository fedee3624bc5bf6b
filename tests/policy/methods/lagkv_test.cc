// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>

#include "policy/fake_layer.h"

namespace winnow::test {
namespace {

using namespace reference;

struct Settings {
  int lag = 128;
  int sinks = 4;
  std::string rank = "partition";
};

std::string spec_of(const Settings& s) {
  return "lagkv:lag=" + std::to_string(s.lag) + ",sinks=" + std::to_string(s.sinks) + ",rank=" + s.rank;
}

/// Element c of a token's key (part 0) or value (part 1).
double element(const FakeLayer& layer, int head, int part, int token, int c) {
  return layer.token(token)[z((part * layer.shape().kv_heads + head) * FakeLayer::kDim + c)];
}

/// Standard deviation over the channels for each token of partition p. Channels are scaled by their bounds in partition
/// p + 1.
std::vector<double> deviations(const FakeLayer& layer, int head, int part, int first, int lag) {
  std::vector<double> least(FakeLayer::kDim, std::numeric_limits<double>::infinity());
  std::vector<double> most(FakeLayer::kDim, -std::numeric_limits<double>::infinity());
  for (int j = first + lag; j < first + 2 * lag; ++j) {
    for (int c = 0; c < FakeLayer::kDim; ++c) {
      least[z(c)] = std::min(least[z(c)], element(layer, head, part, j, c));
      most[z(c)] = std::max(most[z(c)], element(layer, head, part, j, c));
    }
  }
  std::vector<double> out;
  for (int i = first; i < first + lag; ++i) {
    std::vector<double> x;
    for (int c = 0; c < FakeLayer::kDim; ++c) {
      const double extent = most[z(c)] - least[z(c)];
      x.push_back(extent > 0 ? (element(layer, head, part, i, c) - least[z(c)]) / extent : 0);
    }
    double mean = 0;
    for (const double v : x) mean += v / FakeLayer::kDim;
    double variance = 0;
    for (const double v : x) variance += (v - mean) * (v - mean) / (FakeLayer::kDim - 1);
    out.push_back(std::sqrt(variance));
  }
  return out;
}

std::vector<double> softmax(const std::vector<double>& x) {
  double sum = 0;
  for (const double v : x) sum += std::exp(v);
  std::vector<double> out;
  for (const double v : x) out.push_back(std::exp(v) / sum);
  return out;
}

std::vector<std::int32_t> lagkv(const FakeLayer& layer, int head, int budget, const Settings& s) {
  const int lag = std::max(1, std::min(s.lag, (budget - s.sinks) / 4));
  const int partitions = (layer.tokens() - s.sinks) / lag;
  std::vector<double> score;
  for (int p = 0; p + 1 < partitions; ++p) {
    const auto keys = softmax(deviations(layer, head, 0, s.sinks + p * lag, lag));
    const auto values = softmax(deviations(layer, head, 1, s.sinks + p * lag, lag));
    for (int i = 0; i < lag; ++i) {
      double x = (keys[i] + values[i]) / 2;
      if (s.rank == "partition") {
        int below = 0;
        for (int other = 0; other < lag; ++other) {
          const double y = (keys[other] + values[other]) / 2;
          below += y < x || (y == x && other < i) ? 1 : 0;
        }
        x = below;
      }
      score.push_back(x);
    }
  }
  auto kept = all_of(s.sinks);
  for (int j = s.sinks + (partitions - 1) * lag; j < layer.tokens(); ++j) kept.push_back(j);
  for (const auto j : ranking(score, s.sinks)) {
    if (static_cast<int>(kept.size()) < budget) kept.push_back(j);
  }
  return sorted(kept);
}

TEST(LagKV, keeps_what_the_reference_keeps) {
  for (const auto& [kv_heads, group] : {std::pair{1, 1}, {2, 3}}) {
    const FakeLayer layer(kv_heads, group, 203, random_attention(1));
    for (const auto& settings : {Settings{}, Settings{16, 4, "partition"}, Settings{16, 0, "prompt"},
                                 Settings{7, 9, "partition"}, Settings{128, 4, "prompt"}}) {
      for (const int budget : {settings.sinks + 2, 30, 60, 101, 202}) {
        const auto plan = layer.plan(spec_of(settings), budget);
        for (int head = 0; head < kv_heads; ++head)
          EXPECT_EQ(plan.heads[head], lagkv(layer, head, budget, settings)) << spec_of(settings) << " " << budget;
      }
    }
  }
}

/// All values are equal, so the keys decide.
TEST(LagKV, channels_that_are_constant_count_for_nothing) {
  const FakeLayer layer(1, 1, 80, random_attention(1), 1);
  for (const Settings& settings : {Settings{8, 4, "partition"}, Settings{8, 4, "prompt"}})
    EXPECT_EQ(layer.plan(spec_of(settings), 40).heads[0], lagkv(layer, 0, 40, settings)) << settings.rank;
}

TEST(LagKV, half_of_the_budget_is_free_however_small_it_is) {
  const auto method = Spec::parse("lagkv").method();
  for (const int tokens : {100, 500, 2000, 2127}) {
    for (const int budget : {6, 7, 16, 64, 99}) {
      const auto kept = method.selection.always_kept.call({tokens, 1}, budget);
      EXPECT_EQ(kept.sinks, 4);
      EXPECT_GT(kept.recent, 0);
      EXPECT_LE(kept.recent - 1, (budget - 4) / 2) << tokens << " " << budget;
    }
  }
}

}  // namespace
}  // namespace winnow::test
