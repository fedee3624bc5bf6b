#include <hwy/base.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "attention/cpu/amx.h"
#include "attention/cpu/avx512.h"
#include "attention/cpu/bf16_product.h"
#include "base/tiles.h"

#if HWY_ARCH_X86_64

HWY_PUSH_ATTRIBUTES(WINNOW_AVX512_BF16)

namespace winnow::attention::cpu {

namespace {

constexpr int kKeys = tile_keys(Products::bf16);
constexpr int kPairs = kKeys / 2;

/// 16 lanes' weights as the right factor of probabilities, which lie as pairs of keys: a lane's row has its weight for
/// the even key, for the odd key, and what rounding to bf16 left of both, so that only the probabilities are rounded.
class Weights {
 public:
  const void* tile() const { return rows_; }

  void set(__m512 weight) {
    if (_mm512_cmp_ps_mask(weight, _mm512_load_ps(weight_), _CMP_NEQ_UQ) == 0) return;
    _mm512_store_ps(weight_, weight);
    const __m512i high = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(weight));
    const __m512 left = _mm512_sub_ps(weight, _mm512_castsi512_ps(_mm512_slli_epi32(high, 16)));
    const __m512i low = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(left));
    store_columns(high, _mm512_slli_epi32(high, 16), low, _mm512_slli_epi32(low, 16));
  }

 private:
  /// Four columns of 16.
  void store_columns(__m512i a, __m512i b, __m512i c, __m512i d) {
    const __m512i ab_low = _mm512_unpacklo_epi32(a, b);
    const __m512i ab_high = _mm512_unpackhi_epi32(a, b);
    const __m512i cd_low = _mm512_unpacklo_epi32(c, d);
    const __m512i cd_high = _mm512_unpackhi_epi32(c, d);
    store_every_fourth(0, _mm512_unpacklo_epi64(ab_low, cd_low));
    store_every_fourth(1, _mm512_unpackhi_epi64(ab_low, cd_low));
    store_every_fourth(2, _mm512_unpacklo_epi64(ab_high, cd_high));
    store_every_fourth(3, _mm512_unpackhi_epi64(ab_high, cd_high));
  }

  void store_every_fourth(int first, __m512i rows) {
    _mm_store_si128(row(first), _mm512_extracti32x4_epi32(rows, 0));
    _mm_store_si128(row(first + 4), _mm512_extracti32x4_epi32(rows, 1));
    _mm_store_si128(row(first + 8), _mm512_extracti32x4_epi32(rows, 2));
    _mm_store_si128(row(first + 12), _mm512_extracti32x4_epi32(rows, 3));
  }

  __m128i* row(int i) { return reinterpret_cast<__m128i*>(rows_[i]); }

  alignas(64) std::uint32_t rows_[kTileRows][kTileRows] = {};
  alignas(64) float weight_[kTileRows] = {};
};

/// The lanes of one head and, for each group of 16 that some of them are in, the weights.
struct Head {
  explicit Head(int first, int tokens)
      : begin(first),
        end(first + tokens),
        weights(static_cast<std::size_t>((end - first_group() + kTileRows - 1) / kTileRows)) {}

  int first_group() const { return begin / kTileRows * kTileRows; }

  int begin;
  int end;
  std::vector<Weights> weights;
};

/// tiles 0 … 3 [pairs] += probabilities of 16 lanes, from row 0 on, times their weights.
HWY_INLINE void add_group(const float* p, const void* weights) {
  constexpr std::ptrdiff_t kRow = kStrip * sizeof(float);
  constexpr std::ptrdiff_t kTile = kTileRows * kStrip;
  load_tile<4>(weights, kTileRows * sizeof(float));
  load_tile<5>(p, kRow);
  load_tile<6>(p + kTile, kRow);
  multiply_tiles<0, 5, 4>();
  multiply_tiles<1, 6, 4>();
  load_tile<5>(p + 2 * kTile, kRow);
  load_tile<6>(p + 3 * kTile, kRow);
  multiply_tiles<2, 5, 4>();
  multiply_tiles<3, 6, 4>();
}

/// Sums of a tile's keys from tiles 0 … 3.
HWY_INLINE void store_sums(float* sums) {
  alignas(64) float rows[kPairs][kTileRows];
  store_tile<0>(rows[0], sizeof rows[0]);
  store_tile<1>(rows[kTileRows], sizeof rows[0]);
  store_tile<2>(rows[2 * kTileRows], sizeof rows[0]);
  store_tile<3>(rows[3 * kTileRows], sizeof rows[0]);
  for (int i = 0; i < kPairs; ++i) {
    const __m128 row = _mm_load_ps(rows[i]);
    _mm_storel_pi(reinterpret_cast<__m64*>(sums + std::ptrdiff_t{2} * i), _mm_add_ps(row, _mm_movehl_ps(row, row)));
  }
}

/// Sums of all keys of a tile over a head's lanes.
void sum_tile(const Block& b, int tile, const float* mask, Head& head, float* sums) {
  const Retained p = b.tile_of(tile);
  const float* const weight = b.weight_of(tile);
  zero_0123();
  auto group = head.weights.begin();
  for (int lane = head.first_group(); lane < head.end; lane += kTileRows, ++group) {
    const int before = std::max(0, head.begin - lane);
    const int behind = std::min(kTileRows, head.end - lane);
    const auto some = static_cast<__mmask16>((1U << behind) - (1U << before));
    const __m512 of_mask = _mm512_maskz_loadu_ps(some, mask + (lane - head.begin));
    group->set(_mm512_mul_ps(_mm512_maskz_loadu_ps(some, weight + lane), of_mask));
    add_group(p.row(0, lane), group->tile());
  }
  store_sums(sums);
}

}  // namespace

void add_sums_amx(const Block& b, const float* mask, KeyRange keys, const Record& record) {
  std::vector<Head> heads;
  for (int h = 0; h < b.group; ++h) heads.emplace_back(h * b.tokens, b.tokens);
  float sums[kKeys];
  // Heads within tiles: what is retained is then read from front to back.
  for (int tile = keys.begin / kKeys; tile * kKeys < keys.end; ++tile) {
    const int begin = std::max(keys.begin, tile * kKeys);
    const int end = std::min(keys.end, (tile + 1) * kKeys);
    for (int h = 0; h < b.group; ++h) {
      sum_tile(b, tile, mask, heads[static_cast<std::size_t>(h)], sums);
      float* const out = record.at(h, begin);
      for (int key = begin; key < end; ++key) out[key - begin] += sums[key - tile * kKeys];
    }
  }
}

}  // namespace winnow::attention::cpu

HWY_POP_ATTRIBUTES

#else

namespace winnow::attention::cpu {

void add_sums_amx(const Block&, const float*, KeyRange, const Record&) {}

}  // namespace winnow::attention::cpu

#endif
