#include <gtest/gtest.h>

#include "policy/fake_layer.h"

namespace winnow::test {
namespace {

using namespace reference;

using Vector = std::vector<double>;

/// R x, with R the mean of the rotations to the positions first … first + count - 1.
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

/// k' R C R' k is the mean of (q - m)' R' k squared, so no matrix is needed.
std::vector<std::int32_t> expected_attention(const FakeLayer& layer, int head, int budget, int future) {
  constexpr int kDim = FakeLayer::kDim;
  const int n = layer.tokens();
  const int heads = layer.shape().query_heads;
  const auto queries = layer.queries();
  Vector score(z(n));
  for (int g = 0; g < layer.shape().group(); ++g) {
    std::vector<Vector> rows;
    Vector mean(kDim);
    for (int i = 4; i < n; ++i) {
      const auto at = queries.begin() + (i * heads + head * layer.shape().group() + g) * kDim;
      rows.push_back(mean_rotated({at, at + kDim}, n, future));
      for (int c = 0; c < kDim; ++c) mean[z(c)] += rows.back()[z(c)] / (n - 4);
    }
    Vector logit;
    double sum = 0;
    for (int j = 0; j < n; ++j) {
      const auto row = layer.token(j);
      const Vector key(row.begin() + head * kDim, row.begin() + (head + 1) * kDim);
      double variance = 0;
      for (const auto& q : rows) variance += std::pow(dot(q, key) - dot(mean, key), 2) / (n - 4);
      logit.push_back(dot(mean, key) + variance / 2);  // the fake layer's scale is 1
      sum += std::exp(logit.back());
    }
    for (int j = 0; j < n; ++j) score[z(j)] += std::exp(logit[z(j)]) / sum / layer.shape().group();
  }
  for (int j = 0; j < n; ++j) {
    const auto row = layer.token(j);
    double norm = 0;
    for (int c = 0; c < kDim; ++c) norm += std::pow(row[row.size() / 2 + z(head * kDim + c)], 2);
    score[z(j)] *= std::sqrt(norm);
  }
  const auto order = ranking({score.begin() + 4, score.end()}, 4);
  std::vector<std::int32_t> out = {0, 1, 2, 3};
  out.insert(out.end(), order.begin(), order.begin() + (budget - 4));
  return sorted(out);
}

TEST(ExpectedAttention, keeps_what_the_reference_keeps) {
  for (const auto& [kv_heads, group] : {std::pair{1, 1}, {2, 3}, {1, 7}}) {
    FakeLayer layer(kv_heads, group, 60, random_attention(1));
    for (const int budget : {5, 20, 59}) {
      const auto plan = layer.plan("expected-attention:future=20", budget);
      for (int head = 0; head < kv_heads; ++head)
        EXPECT_EQ(plan.heads[z(head)], expected_attention(layer, head, budget, 20)) << budget << " " << group;
    }
  }
}

}  // namespace
}  // namespace winnow::test
