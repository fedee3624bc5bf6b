// SPDX-License-Identifier: Apache-2.0
#include "policy/ridge.h"

#include <gtest/gtest.h>

#include <random>
#include <span>

#include "policy/slow_ridge.h"

namespace winnow::test {
namespace {

std::size_t z(int i) { return static_cast<std::size_t>(i); }

struct Data {
  int inputs;
  int outputs;
  std::vector<float> rows;
  std::vector<float> targets;

  std::vector<std::vector<double>> all_rows() const {
    std::vector<std::vector<double>> out;
    for (auto x = rows.begin(); x != rows.end(); x += inputs) out.emplace_back(x, x + inputs);
    return out;
  }
  std::vector<double> all_targets(int output) const {
    std::vector<double> out;
    for (std::size_t i = z(output); i < targets.size(); i += z(outputs)) out.push_back(targets[i]);
    return out;
  }
};

/// Inputs with means far from 0. Two inputs are nearly equal, and one is constant.
Data data_of(int n, int inputs, int outputs) {
  std::mt19937 random(static_cast<unsigned>(n * 100 + inputs));
  std::normal_distribution<float> normal;
  Data out{inputs, outputs, {}, {}};
  for (int i = 0; i < n; ++i) {
    std::vector<float> row;
    for (int j = 0; j < inputs; ++j) row.push_back(normal(random) + static_cast<float>(j % 7) * 5);
    if (inputs > 3) row[1] = row[0] + 0.01F * normal(random);
    if (inputs > 3) row[2] = 30;
    for (int o = 0; o < outputs; ++o) {
      float y = 2 + 0.3F * normal(random);
      for (int j = 0; j < inputs; j += o + 1) y += 0.1F * row[z(j)];
      out.targets.push_back(y);
    }
    out.rows.insert(out.rows.end(), row.begin(), row.end());
  }
  return out;
}

void expect_as_slow(const Data& data, double alpha, int together) {
  policy::Ridge ridge(data.inputs, data.outputs);
  const int n = static_cast<int>(data.rows.size()) / data.inputs;
  for (int first = 0; first < n; first += together) {
    const int count = std::min(together, n - first);
    ridge.add(std::span(data.rows).subspan(z(first * data.inputs), z(count * data.inputs)),
              std::span(data.targets).subspan(z(first * data.outputs), z(count * data.outputs)));
  }
  const auto fit = ridge.fit(alpha);
  const auto rows = data.all_rows();
  double explained = 0;
  for (int o = 0; o < data.outputs; ++o) {
    const SlowRidge slow(rows, data.all_targets(o), alpha);
    explained += slow.explained / data.outputs;
    for (const auto& row : rows) {
      double got = fit.bias[z(o)];
      for (int j = 0; j < data.inputs; ++j) got += fit.weights[z(o * data.inputs + j)] * row[z(j)];
      ASSERT_NEAR(got, slow.of(row), 2e-3) << data.inputs << " inputs, alpha " << alpha << ", output " << o;
    }
  }
  EXPECT_NEAR(fit.explained, explained, 1e-3);
}

TEST(Ridge, is_that_of_the_normal_equations) {
  for (const int inputs : {1, 5, 64, 150}) {
    for (const double alpha : {0.01, 1.0, 100.0}) {
      const auto data = data_of(400, inputs, 3);
      for (const int together : {400, 150, 7}) expect_as_slow(data, alpha, together);
    }
  }
}

TEST(Ridge, has_an_answer_where_rows_are_fewer_than_inputs) { expect_as_slow(data_of(20, 64, 2), 1, 20); }

TEST(Ridge, explains_nothing_of_what_does_not_depend_on_the_inputs) {
  policy::Ridge ridge(1, 1);
  ridge.add(std::vector<float>{1, 2, 1, 2}, std::vector<float>{5, 5, 7, 7});
  const auto fit = ridge.fit(1);
  EXPECT_NEAR(fit.weights[0], 0, 1e-6);
  EXPECT_NEAR(fit.bias[0], 6, 1e-5);
  EXPECT_NEAR(fit.explained, 0, 1e-6);
}

TEST(Ridge, of_one_input_is_what_is_computed_by_hand) {
  // Deviations -1, 0, 1 and -2, 0, 2: w = 4 / (2 + alpha).
  policy::Ridge ridge(1, 1);
  ridge.add(std::vector<float>{1, 2, 3}, std::vector<float>{2, 4, 6});
  const auto fit = ridge.fit(2);
  EXPECT_NEAR(fit.weights[0], 1, 1e-6);
  EXPECT_NEAR(fit.bias[0], 2, 1e-6);
  EXPECT_NEAR(fit.explained, 1 - 2.0 / 8, 1e-6);
}

}  // namespace
}  // namespace winnow::test
