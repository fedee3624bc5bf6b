// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "fixture.h"

namespace winnow::attention {
namespace {

constexpr int kDim = 96;
constexpr float kNothing = -std::numeric_limits<float>::infinity();

struct State {
  std::vector<float> o = std::vector<float>(kDim, 0.0F);
  float m = kNothing;
  float d = 0;
};

State random_state(unsigned seed) {
  std::mt19937 random(seed);
  State s;
  s.o = noise(kDim, seed);
  s.m = std::uniform_real_distribution<float>(-20, 20)(random);
  s.d = std::uniform_real_distribution<float>(1, 50)(random);
  return s;
}

State merged(State a, State b) {
  PartialState into{a.o, a.m, a.d};
  merge(into, {b.o, b.m, b.d});
  return {std::vector<float>(into.o.begin(), into.o.end()), into.m, into.d};
}

/// Compares the results of two orders of folding; o and d are relative to the largest m.
void expect_same(const State& a, const State& b, double size_o, double size_d) {
  EXPECT_EQ(a.m, b.m);  // a maximum, exact
  // Each term is scaled at most twice and added twice, on both sides: rounded arguments up to 40 (40 u), exp (2 u), a
  // product (u), a sum (u).
  const double relative = 2 * 2 * (40 + 4) * reference::kRoundoff;
  EXPECT_NEAR(a.d, b.d, relative * size_d);
  for (std::size_t i = 0; i < kDim; ++i) EXPECT_NEAR(a.o[i], b.o[i], relative * size_o);
}

/// The sums of |o| and of d over the states, scaled to the largest m. Roundings are relative to these sums.
std::pair<double, double> sizes(std::initializer_list<State> states) {
  double m = -1e300;
  for (const auto& s : states) m = std::max(m, static_cast<double>(s.m));
  double o = 0;
  double d = 0;
  for (const auto& s : states) {
    const double weight = std::exp(static_cast<double>(s.m) - m);
    double largest = 0;
    for (const float x : s.o) largest = std::max(largest, std::abs(static_cast<double>(x)));
    o += weight * largest;
    d += weight * static_cast<double>(s.d);
  }
  return {o, d};
}

TEST(PartialState, merge_is_commutative) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    const State a = random_state(3 * seed);
    const State b = random_state(3 * seed + 1);
    const auto [o, d] = sizes({a, b});
    expect_same(merged(a, b), merged(b, a), o, d);
  }
}

TEST(PartialState, merge_is_associative) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    const State a = random_state(3 * seed);
    const State b = random_state(3 * seed + 1);
    const State c = random_state(3 * seed + 2);
    const auto [o, d] = sizes({a, b, c});
    expect_same(merged(merged(a, b), c), merged(a, merged(b, c)), o, d);
  }
}

TEST(PartialState, nothing_seen_is_neutral) {
  const State nothing;
  for (unsigned seed = 0; seed < 20; ++seed) {
    const State a = random_state(seed);
    for (const State& s : {merged(a, nothing), merged(nothing, a)}) {
      EXPECT_EQ(s.m, a.m);
      EXPECT_EQ(s.d, a.d);
      EXPECT_EQ(s.o, a.o);
    }
  }
  const State still = merged(nothing, nothing);
  EXPECT_EQ(still.m, kNothing);
  EXPECT_EQ(still.d, 0);
  EXPECT_EQ(still.o, nothing.o);
}

TEST(PartialState, parts_of_the_keys_fold_to_the_whole) {
  const int n = 300;
  const auto q = noise(kDim, 1);
  const auto keys = noise(n * kDim, 2);
  const auto values = noise(n * kDim, 3);
  const double scale = 0.1;
  const auto whole = reference::attend(q, keys, values, {scale});
  State all;
  for (const auto& [begin, end] : {std::pair{200, 300}, std::pair{0, 7}, std::pair{7, 7}, std::pair{7, 200}}) {
    // The state of a part, by its definition, rounded once to f32.
    std::vector<double> o(kDim, 0);
    double m = -std::numeric_limits<double>::infinity();
    double d = 0;
    for (int j = begin; j < end; ++j) m = std::max(m, whole.logit[j]);
    m = static_cast<double>(static_cast<float>(m));
    for (int j = begin; j < end; ++j) {
      const double p = std::exp(whole.logit[j] - m);
      d += p;
      for (std::size_t i = 0; i < kDim; ++i) o[i] += p * static_cast<double>(values[z(j) * kDim + i]);
    }
    State part{std::vector<float>(o.begin(), o.end()), static_cast<float>(m), static_cast<float>(d)};
    all = merged(all, part);
  }
  std::vector<float> out;
  for (const float x : all.o) out.push_back(x / all.d);
  expect_close(out, whole.out, whole.out_error, "folded");
}

}  // namespace
}  // namespace winnow::attention
