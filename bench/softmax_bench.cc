// SPDX-License-Identifier: Apache-2.0
// The softmax of a tile of logits as the f32 attention kernel does it, one SIMD column for each query: by its own
// base-2 exponential, by Highway's, and by the standard library's one number at a time.
#include <cmath>
#include <span>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "softmax_bench.cc"
#include <hwy/foreach_target.h>
// Must follow foreach_target.h, which sets the target of this pass.
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "attention/cpu/exp2-inl.h"

HWY_BEFORE_NAMESPACE();
namespace winnow::attention::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

/// The exponentials of [keys][columns] logits minus the column's largest logit, and the columns' sums.
template <class Exponential>
HWY_INLINE void softmax(std::span<const float> logits, int columns, const Exponential& exponential,
                        float* HWY_RESTRICT p, float* sums) {
  const D d;
  const auto end = static_cast<std::ptrdiff_t>(logits.size());
  for (int column = 0; column < columns; column += static_cast<int>(hn::Lanes(d))) {
    V top = hn::LoadU(d, logits.data() + column);
    for (std::ptrdiff_t i = column; i < end; i += columns) top = hn::Max(top, hn::LoadU(d, logits.data() + i));
    V sum = hn::Zero(d);
    for (std::ptrdiff_t i = column; i < end; i += columns) {
      const V x = exponential(hn::Sub(hn::LoadU(d, logits.data() + i), top));
      hn::StoreU(x, d, p + i);
      sum = hn::Add(sum, x);
    }
    hn::StoreU(sum, d, sums + column);
  }
}

void own(std::span<const float> logits, int columns, float* p, float* sums) {
  softmax(
      logits, columns, [](V x) { return exp2_of_negative(D(), x); }, p, sums);
}

void highway(std::span<const float> logits, int columns, float* p, float* sums) {
  softmax(
      logits, columns, [](V x) { return hn::Exp(D(), x); }, p, sums);
}

}  // namespace winnow::attention::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <benchmark/benchmark.h>

#include <random>

namespace winnow::attention::cpu {

HWY_EXPORT(own);
HWY_EXPORT(highway);

namespace {

constexpr int kColumns = 192;
constexpr int kKeys = 64;

template <class Softmax>
void tile(benchmark::State& state, const Softmax& softmax) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> logits(static_cast<std::size_t>(kColumns) * kKeys);
  for (float& x : logits) x = 4 * normal(random);
  std::vector<float> p(logits.size());
  std::vector<float> sums(kColumns);
  for (auto _ : state) {
    softmax(logits, kColumns, p.data(), sums.data());
    benchmark::DoNotOptimize(p.data());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(logits.size()));
}

void standard(std::span<const float> logits, int columns, float* p, float* sums) {
  for (int column = 0; column < columns; ++column) {
    float top = logits[column];
    for (std::size_t i = static_cast<std::size_t>(column); i < logits.size(); i += kColumns)
      top = std::max(top, logits[i]);
    sums[column] = 0;
    for (std::size_t i = static_cast<std::size_t>(column); i < logits.size(); i += kColumns)
      sums[column] += p[i] = std::exp(logits[i] - top);
  }
}

void with_own(std::span<const float> logits, int columns, float* p, float* sums) {
  HWY_DYNAMIC_DISPATCH(own)(logits, columns, p, sums);
}
void with_highway(std::span<const float> logits, int columns, float* p, float* sums) {
  HWY_DYNAMIC_DISPATCH(highway)(logits, columns, p, sums);
}

BENCHMARK_CAPTURE(tile, own, with_own);
BENCHMARK_CAPTURE(tile, highway, with_highway);
BENCHMARK_CAPTURE(tile, standard, standard);

}  // namespace
}  // namespace winnow::attention::cpu

BENCHMARK_MAIN();
#endif
