// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "policy/fake_layer.h"

namespace winnow::test {
namespace {

using namespace reference;

using Vector = std::vector<double>;

/// R x, where R is the mean of the rotations to the positions first … first + count - 1.
Vector mean_rotated(const Vector& x, int first, int count) {
  Vector out(x.size());
  for (int t = first; t < first + count; ++t) {
    Vector turned = x;
    for (std::size_t i = 0; i < FakeLayer::rope().frequency.size(); ++i) {
      const double angle = t * static_cast<double>(FakeLayer::rope().frequency[i]);
      turned[2 * i] = x[2 * i] * std::cos(angle) - x[2 * i + 1] * std::sin(angle);
      turned[2 * i + 1] = x[2 * i] * std::sin(angle) + x[2 * i + 1] * std::cos(angle);
    }
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += turned[i] / count;
  }
  return out;
}

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

struct Settings {
  int future = 20;
  int sinks = 4;
  bool softmax_over_all = false;
};

std::string spec_of(const Settings& s) {
  return "expected-attention:future=" + std::to_string(s.future) + ",sinks=" + std::to_string(s.sinks) +
         ",softmax=" + (s.softmax_over_all ? "all" : "evictable");
}

/// No matrix is needed: k' R C R' k is the mean of ((q - m)' R' k)².
std::vector<std::int32_t> expected_attention(const FakeLayer& layer, int head, int budget, const Settings& s) {
  constexpr int kDim = FakeLayer::kDim;
  const int n = layer.tokens();
  const int heads = layer.shape().query_heads;
  const auto queries = layer.queries();
  Vector score(z(n));
  for (int g = 0; g < layer.shape().group(); ++g) {
    std::vector<Vector> rows;
    Vector mean(kDim);
    for (int i = s.sinks; i < n; ++i) {
      const auto at = queries.begin() + (i * heads + head * layer.shape().group() + g) * kDim;
      rows.push_back(mean_rotated({at, at + kDim}, n, s.future));
      for (int c = 0; c < kDim; ++c) mean[c] += rows.back()[c] / (n - s.sinks);
    }
    Vector logit;
    const auto query_head = z(head * layer.shape().group() + g);
    double sum = layer.sink_logits.empty() ? 0 : std::exp(static_cast<double>(layer.sink_logits[query_head]));
    for (int j = 0; j < n; ++j) {
      const auto row = layer.token(j);
      const Vector key(row.begin() + head * kDim, row.begin() + (head + 1) * kDim);
      double variance = 0;
      for (const auto& q : rows) variance += std::pow(dot(q, key) - dot(mean, key), 2) / (n - s.sinks);
      logit.push_back(dot(mean, key) + variance / 2);  // the fake layer's scale is 1
      if (layer.cap > 0) logit.back() = layer.cap * std::tanh(logit.back() / layer.cap);
      if (s.softmax_over_all || j >= s.sinks) sum += std::exp(logit.back());
    }
    for (int j = 0; j < n; ++j) score[j] += std::exp(logit[j]) / sum / layer.shape().group();
  }
  for (int j = 0; j < n; ++j) {
    const auto row = layer.token(j);
    double norm = 0;
    for (int c = 0; c < kDim; ++c) norm += std::pow(row[row.size() / 2 + z(head * kDim + c)], 2);
    score[j] *= std::sqrt(norm);
  }
  const auto order = ranking({score.begin() + s.sinks, score.end()}, s.sinks);
  auto out = all_of(s.sinks);
  out.insert(out.end(), order.begin(), order.begin() + (budget - s.sinks));
  return sorted(out);
}

TEST(ExpectedAttention, keeps_what_the_reference_keeps) {
  for (const auto& [kv_heads, group] : {std::pair{1, 1}, {2, 3}, {1, 7}}) {
    const FakeLayer layer(kv_heads, group, 60, random_attention(1));
    for (const int sinks : {0, 4, 20}) {
      for (const Settings& settings : {Settings{20, sinks, false}, Settings{20, sinks, true}}) {
        for (const int budget : {sinks + 1, 35, 59}) {
          const auto plan = layer.plan(spec_of(settings), budget);
          for (int head = 0; head < kv_heads; ++head) {
            EXPECT_EQ(plan.heads[head], expected_attention(layer, head, budget, settings))
                << spec_of(settings) << " " << budget << " " << group;
          }
        }
      }
    }
  }
}

/// With one query head a sink changes nothing. In a group's mean, heads whose sinks get more attention count less.
TEST(ExpectedAttention, has_the_network_s_caps_and_sinks) {
  for (const float cap : {0.0F, 2.0F}) {
    for (const bool sinks : {false, true}) {
      FakeLayer layer(2, 3, 60, random_attention(1));
      layer.cap = cap;
      if (sinks) layer.sink_logits = {8, -3, 0, 1, 12, 5};
      for (const Settings& settings : {Settings{20, 4, false}, Settings{20, 4, true}}) {
        const auto plan = layer.plan(spec_of(settings), 25);
        for (int head = 0; head < 2; ++head)
          EXPECT_EQ(plan.heads[head], expected_attention(layer, head, 25, settings)) << cap << sinks;
      }
      const FakeLayer plain(2, 3, 60, random_attention(1));
      if (cap == 0 && !sinks) continue;
      EXPECT_NE(expected_attention(layer, 1, 25, {20, 4, true}), expected_attention(plain, 1, 25, {20, 4, true}));
    }
  }
}

TEST(ExpectedAttention, leaves_the_sinks_out_of_the_softmax_by_default) {
  const FakeLayer layer(2, 3, 60, random_attention(1));
  const auto without_sinks = expected_attention(layer, 1, 35, {20, 20, false});
  EXPECT_EQ(layer.plan("expected-attention:future=20,sinks=20", 35).heads[1], without_sinks);
  ASSERT_NE(expected_attention(layer, 1, 35, {20, 20, true}), without_sinks)
      << "a case in which it makes no difference";
}

}  // namespace
}  // namespace winnow::test
