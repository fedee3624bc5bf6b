// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "policy/fake_layer.h"
#include "winnow/error.h"

namespace winnow::test {
namespace {

using namespace reference;

constexpr int kFirst = 4;  ///< first tokens of a passage, which are left out

std::vector<float> some_filters(int heads) {
  std::vector<float> out;
  for (int i = 0; i < heads * FakeLayer::kDim; ++i) out.push_back(std::sin(static_cast<float>(i * i + 1)));
  return out;
}

/// Entries with the highest -(key · filter), kvpress's score. Its filters have the opposite sign.
std::vector<std::int32_t> kept_by_reference(const FakeLayer& layer, const std::vector<float>& filters, int head,
                                            int budget, int sinks) {
  std::vector<double> score;
  for (int j = sinks; j < layer.tokens(); ++j) {
    const auto row = layer.token(j);
    double product = 0;
    for (int c = 0; c < FakeLayer::kDim; ++c)
      product += static_cast<double>(row[z(head * FakeLayer::kDim + c)]) * -filters[z(head * FakeLayer::kDim + c)];
    score.push_back(-product);
  }
  auto out = all_of(sinks);
  const auto order = ranking(score, sinks);
  out.insert(out.end(), order.begin(), order.begin() + (budget - sinks));
  return sorted(out);
}

TEST(QFilter, keeps_what_the_reference_keeps) {
  for (const auto& [kv_heads, group] : {std::pair{1, 1}, {2, 3}}) {
    FakeLayer layer(kv_heads, group, 60, random_attention(1));
    const auto filters = some_filters(kv_heads);
    layer.facts["query filters"] = filters;
    for (const int sinks : {0, 4}) {
      for (const int budget : {sinks + 1, 20, 59}) {
        const auto plan = layer.plan("qfilter:sinks=" + std::to_string(sinks), budget);
        for (int head = 0; head < kv_heads; ++head)
          EXPECT_EQ(plan.heads[z(head)], kept_by_reference(layer, filters, head, budget, sinks)) << budget;
      }
    }
  }
}

TEST(QFilter, refuses_a_calibration_without_filters) {
  const FakeLayer layer(2, 1, 60, random_attention(1));
  EXPECT_THROW(layer.plan("qfilter", 20), UsageError);
}

/// The first right singular vector of rows, by one-sided Jacobi rotations (Hestenes, 1958).
std::vector<double> first_singular_vector(Matrix rows) {
  const std::size_t dim = rows.front().size();
  Matrix v(dim, std::vector<double>(dim));
  for (std::size_t i = 0; i < dim; ++i) v[i][i] = 1;
  const auto product = [&](std::size_t p, std::size_t q) {
    double sum = 0;
    for (const auto& row : rows) sum += row[p] * row[q];
    return sum;
  };
  for (int sweep = 0; sweep < 60; ++sweep) {
    for (std::size_t p = 0; p < dim; ++p) {
      for (std::size_t q = p + 1; q < dim; ++q) {
        const double angle = 0.5 * std::atan2(2 * product(p, q), product(p, p) - product(q, q));
        for (Matrix* const of : {&rows, &v}) {
          for (auto& row : *of) {
            const double x = row[p];
            row[p] = std::cos(angle) * x + std::sin(angle) * row[q];
            row[q] = std::cos(angle) * row[q] - std::sin(angle) * x;
          }
        }
      }
    }
  }
  std::size_t best = 0;
  for (std::size_t c = 0; c < dim; ++c) best = product(c, c) > product(best, best) ? c : best;
  std::vector<double> out;
  for (std::size_t r = 0; r < dim; ++r) out.push_back(v[r][best]);
  return out;
}

/// Filter of a query head. Its sign makes the sum of its products with the rows positive.
std::vector<double> filter(const Matrix& rows) {
  auto out = first_singular_vector(rows);
  double sum = 0;
  for (const auto& row : rows) sum += std::inner_product(row.begin(), row.end(), out.begin(), 0.0);
  for (double& x : out) x *= sum < 0 ? -1 : 1;
  return out;
}

/// Two passages, each in two chunks, by two members of a team.
TEST(QFilter, filters_are_main_directions_of_rotated_queries) {
  constexpr int kHeads = 4;
  constexpr int kKvHeads = 2;
  constexpr int kTokens = 60;
  const FakeLayer layer(kKvHeads, kHeads / kKvHeads, kTokens, random_attention(1));
  auto queries = layer.rotated_queries();
  for (std::size_t i = 0; i < queries.size(); ++i) {  // the heads' queries point in different directions
    const auto head = i / FakeLayer::kDim % kHeads;
    if (i % FakeLayer::kDim == head) queries[i] += head % 2 == 0 ? 2.0F : -3.0F;
  }
  const auto part = Spec::parse("qfilter").method().calibration;
  const auto calibrator = part->calibrator({kHeads, kKvHeads, FakeLayer::kDim, 1});
  std::vector<Matrix> rows(kHeads);
  for (int passage = 0; passage < 2; ++passage) {
    for (float& x : queries) x *= passage == 0 ? 1 : 0.5F;
    for (const auto& [first, count] : {std::pair{0, 32}, {32, 28}}) {
      for (const int member : {0, 1})
        calibrator->see_rows(
            {first, count, queries.data() + first * kHeads * FakeLayer::kDim, nullptr, layer.scratch()}, {member, 2});
    }
    for (int i = kFirst * kHeads; i < kTokens * kHeads; ++i) {
      const float* const query = queries.data() + i * FakeLayer::kDim;
      rows[z(i % kHeads)].emplace_back(query, query + FakeLayer::kDim);
    }
  }
  const auto got = calibrator->numbers();
  ASSERT_EQ(got.size(), z(kKvHeads * FakeLayer::kDim));
  for (int head = 0; head < kKvHeads; ++head) {
    const auto first = filter(rows[z(2 * head)]);
    const auto second = filter(rows[z(2 * head + 1)]);
    for (int c = 0; c < FakeLayer::kDim; ++c)
      EXPECT_NEAR(got[z(head * FakeLayer::kDim + c)], (first[z(c)] + second[z(c)]) / 2, 1e-5) << head << " " << c;
  }
}

/// All queries are 0.
TEST(QFilter, filters_of_no_direction_are_zeros) {
  const FakeLayer layer(1, 1, 10, random_attention(1));
  const auto calibrator = Spec::parse("qfilter").method().calibration->calibrator({1, 1, FakeLayer::kDim, 1});
  const std::vector<float> queries(10 * FakeLayer::kDim);
  calibrator->see_rows({0, 10, queries.data(), nullptr, layer.scratch()}, {0, 1});
  EXPECT_EQ(calibrator->numbers(), std::vector<float>(FakeLayer::kDim));
}

}  // namespace
}  // namespace winnow::test
