// SPDX-License-Identifier: Apache-2.0
#include "benchmark/roofline.h"

#include <functional>
#include <thread>
#include <vector>

#include "base/as_size.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "base/tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "benchmark/roofline.cc"
#include <hwy/foreach_target.h>
// Must follow foreach_target.h, which selects the target of each compilation.
#include <hwy/highway.h>

#if HWY_ARCH_X86_64
#include <immintrin.h>
#endif

HWY_BEFORE_NAMESPACE();
namespace winnow::benchmark::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

/// Number of sums that hides the latency of a multiply-add.
constexpr int kSums = 12;

/// Does `rounds` rounds of kSums vector multiply-adds. Returns the number of operations. `sink` keeps the compiler from
/// removing them.
double multiply_add(int rounds, float* sink) {
  const D d;
  V sum[kSums];
  for (V& v : sum) v = hn::Zero(d);
  V x = hn::Set(d, 1.0F);
  const V y = hn::Set(d, 0.5F);
  for (int i = 0; i < rounds; ++i) {
    for (V& v : sum) v = hn::MulAdd(x, y, v);
    x = hn::Mul(x, y);
  }
  V all = hn::Zero(d);
  for (const V v : sum) all = hn::Add(all, v);
  *sink = hn::GetLane(hn::SumOfLanes(d, all));
  return 2.0 * kSums * rounds * static_cast<double>(hn::Lanes(d));
}

/// Reads a whole array.
void read(const float* from, std::size_t count, float* sink) {
  const D d;
  const std::size_t step = hn::Lanes(d);
  V sum[4];
  for (V& v : sum) v = hn::Zero(d);
  for (std::size_t i = 0; i + 4 * step <= count; i += 4 * step) {
    for (std::size_t j = 0; j < 4; ++j) sum[j] = hn::Add(sum[j], hn::LoadU(d, from + i + j * step));
  }
  *sink = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(sum[0], sum[1]), hn::Add(sum[2], sum[3]))));
}

}  // namespace winnow::benchmark::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace winnow::benchmark {

HWY_EXPORT(multiply_add);
HWY_EXPORT(read);

namespace {

/// The best rate of several tries, in units per second. In each try, every thread does `units` units.
double best_rate(int threads, double units, const std::function<void(int)>& work) {
  constexpr int kTries = 5;
  double least = 1e30;
  for (int i = 0; i < kTries; ++i) {
    const auto begin = Clock::now();
    std::vector<std::thread> team;
    for (int t = 1; t < threads; ++t) team.emplace_back(work, t);
    work(0);
    for (auto& thread : team) thread.join();
    least = std::min(least, ms_since(begin) / 1000);
  }
  return threads * units / least;
}

double measure_f32(int threads) {
  constexpr int kRounds = 4'000'000;
  std::vector<float> sinks(as_size(threads) * 16);  // one cache line for each
  const auto work = [&sinks](int t) { HWY_DYNAMIC_DISPATCH(multiply_add)(kRounds, &sinks[as_size(t) * 16]); };
  float sink = 0;
  return best_rate(threads, HWY_DYNAMIC_DISPATCH(multiply_add)(kRounds, &sink), work);
}

/// Multiplies tiles in registers.
void multiply_tiles(int rounds) {
#if HWY_ARCH_X86_64
  const TileScope tiles;
  zero_0123();
  zero_tile<4>();
  zero_tile<5>();
  for (int i = 0; i < rounds; ++i) {
    winnow::multiply_tiles<0, 4, 5>();
    winnow::multiply_tiles<1, 4, 5>();
    winnow::multiply_tiles<2, 4, 5>();
    winnow::multiply_tiles<3, 4, 5>();
  }
#endif
}

using HWY_NAMESPACE::kSums;

/// Multiplies vectors in registers.
#if HWY_ARCH_X86_64
__attribute__((target("avx512f,avx512bf16"))) void multiply_pairs(int rounds) {
  __m512 sum[kSums] = {};
  __m512i x = {};
  // Hides the value from the compiler, which could otherwise remove or hoist the products.
  asm volatile("" : "+v"(x));
  for (__m512& s : sum) asm volatile("" : "+v"(s));
  for (int i = 0; i < rounds; ++i) {
    for (__m512& s : sum) s = _mm512_dpbf16_ps(s, (__m512bh)x, (__m512bh)x);
  }
  for (__m512& s : sum) asm volatile("" : "+v"(s));
}
#else
void multiply_pairs(int) {}
#endif

double measure_bf16(int threads) {
  if (!multiplies_bf16()) return 0;
  constexpr int kRounds = 1'000'000;
  if (!has_amx_bf16()) {
    constexpr double kOperations = 2.0 * 32;  // of a product of two vectors
    return best_rate(threads, kSums * kRounds * kOperations, [](int) { multiply_pairs(kRounds); });
  }
  constexpr double kOperations = 2.0 * 16 * 16 * 32;  // of a product of two tiles
  return best_rate(threads, 4 * kRounds * kOperations, [](int) { multiply_tiles(kRounds); });
}

double measure_bandwidth(int threads) {
  // Far larger than any shared cache.
  constexpr std::size_t kFloats = std::size_t{128} << 20;
  const std::vector<float> memory(kFloats, 1.0F);
  std::vector<float> sinks(as_size(threads) * 16);
  const std::size_t part = kFloats / as_size(threads);
  const auto work = [&](int t) {
    const auto i = as_size(t);
    HWY_DYNAMIC_DISPATCH(read)(memory.data() + i * part, part, &sinks[i * 16]);
  };
  return best_rate(threads, static_cast<double>(part * sizeof(float)), work);
}

}  // namespace

Roofline measure_roofline(int threads) {
  return {measure_f32(threads), measure_bf16(threads), measure_bandwidth(threads)};
}

}  // namespace winnow::benchmark
#endif
