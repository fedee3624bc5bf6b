// SPDX-License-Identifier: Apache-2.0
#include "attention/cpu/bf16_columns.h"

#include <hwy/base.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "attention/cpu/avx512.h"
#include "attention/cpu/bf16_product.h"
#include "base/as_size.h"

#if HWY_ARCH_X86_64

HWY_PUSH_ATTRIBUTES(WINNOW_AVX512_BF16)

namespace winnow::attention::cpu {

namespace {

constexpr int kKeys = tile_keys(ComputeType::bf16);
/// Keys with sums in registers, a vector of queries for each: half of all registers.
constexpr int kTogether = kVector;

/// Queries of one head in one unit, in whole vectors. The first and the last vector may include queries of other heads,
/// with weight 0.
class HeadQueries {
 public:
  HeadQueries(const Block& b, int head, const UnitTokens& unit)
      : unit_(unit),
        first_(head * b.tokens + unit.first),
        end_(first_ + unit.count),
        weights_(as_size(padded(end_ - begin(), kVector))) {}

  int unit() const { return unit_.unit; }

  int begin() const { return first_ / kVector * kVector; }
  int end() const { return end_; }
  /// REQUIRES: `query` is begin() plus a multiple of kVector, and less than end().
  __m512 weight(int query) const { return _mm512_loadu_ps(weights_.data() + (query - begin())); }

  void weigh(const float* of_tile, const float* mask) {
    float* const own = weights_.data() + (first_ - begin());
    for (int i = 0; i < end_ - first_; ++i) own[i] = of_tile[first_ + i] * mask[unit_.first + i];
  }

 private:
  UnitTokens unit_;
  int first_;
  int end_;
  std::vector<float> weights_;
};

/// Adds quarters of a in pairs, then those of b.
HWY_INLINE __m512 add_quarters(__m512 a, __m512 b) {
  return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
}

/// Element i is the sum of the elements of x[i]. Each step makes one vector of two, and halves the summands per sum.
/// Overwrites x.
HWY_INLINE __m512 sums_of_vectors(__m512 (&x)[kVector]) {
  HWY_UNROLL(8)
  for (int i = 0; i < 8; ++i)
    x[i] = _mm512_add_ps(_mm512_unpacklo_ps(x[2 * i], x[2 * i + 1]), _mm512_unpackhi_ps(x[2 * i], x[2 * i + 1]));
  HWY_UNROLL(4)
  for (int i = 0; i < 4; ++i) {
    const __m512d a = _mm512_castps_pd(x[2 * i]);
    const __m512d b = _mm512_castps_pd(x[2 * i + 1]);
    x[i] = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(a, b)), _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)));
  }
  return add_quarters(add_quarters(x[0], x[1]), add_quarters(x[2], x[3]));
}

/// Sums over the queries of a head, for kTogether keys from `key` of a tile on.
HWY_INLINE __m512 sums_of_keys(const Retained& p, int key, const HeadQueries& head) {
  const __m512i upper_half = _mm512_set1_epi32(static_cast<int>(0xffff0000U));
  __m512 sums[kTogether];  // in registers: see logits-inl.h
  HWY_UNROLL(16)
  for (auto& sum : sums) sum = _mm512_setzero_ps();
  for (int query = head.begin(); query < head.end(); query += kVector) {
    const __m512 weight = head.weight(query);
    const float* const rows = p.row(key, query);
    HWY_UNROLL(8)
    for (int i = 0; i < kTogether / 2; ++i) {
      const __m512i pairs = _mm512_loadu_si512(rows + std::ptrdiff_t{i} * kStrip);
      const __m512 even = _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16));
      const __m512 odd = _mm512_castsi512_ps(_mm512_and_si512(pairs, upper_half));
      sums[2 * i] = _mm512_fmadd_ps(even, weight, sums[2 * i]);
      sums[2 * i + 1] = _mm512_fmadd_ps(odd, weight, sums[2 * i + 1]);
    }
  }
  return sums_of_vectors(sums);
}

/// Sums [kKeys] over the queries of a head, for a tile's keys.
void sum_tile(const Retained& p, const HeadQueries& head, float* sums) {
  for (int key = 0; key < kKeys; key += kTogether) _mm512_storeu_ps(sums + key, sums_of_keys(p, key, head));
}

}  // namespace

void add_sums_bf16(const Block& b, const float* mask, KeyRange keys, const Record& record) {
  std::vector<HeadQueries> queries;  // [head][unit]
  const auto units = units_of(b);
  for (int h = 0; h < b.group; ++h) {
    for (const auto& unit : units) queries.emplace_back(b, h, unit);
  }
  float sums[kKeys];
  // In reverse: the last tiles, just written, are still in the L2 cache, and the first ones will be when the next block
  // writes them. Heads within tiles, in memory order.
  for (int tile = (keys.end - 1) / kKeys; tile >= keys.begin / kKeys; --tile) {
    const int begin = std::max(keys.begin, tile * kKeys);
    const int end = std::min(keys.end, (tile + 1) * kKeys);
    for (std::size_t i = 0; i < queries.size(); ++i) {
      queries[i].weigh(b.weight_of(tile), mask);
      sum_tile(b.tile_of(tile), queries[i], sums);
      float* const out = record.at(queries[i].unit(), static_cast<int>(i / units.size()), begin);
      for (int key = begin; key < end; ++key) out[key - begin] += sums[key - tile * kKeys];
    }
  }
}

}  // namespace winnow::attention::cpu

HWY_POP_ATTRIBUTES

#else

namespace winnow::attention::cpu {

void add_sums_bf16(const Block&, const float*, KeyRange, const Record&) {}

}  // namespace winnow::attention::cpu

#endif
