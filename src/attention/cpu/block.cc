#include "attention/cpu/block.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numbers>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/cpu/block.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h, which defines the target that this pass compiles for.
#include <hwy/highway.h>

#include "attention/cpu/amx.h"
#include "attention/cpu/exp2-inl.h"
#include "attention/cpu/retained-inl.h"

HWY_BEFORE_NAMESPACE();
namespace winnow::attention::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

constexpr float kNothing = -std::numeric_limits<float>::infinity();

/// Stored elements to f32, whole vectors; the row's end is taken one by one.
template <class T>
HWY_INLINE void convert(const T* HWY_RESTRICT from, int n, float* HWY_RESTRICT to) {
  const D d;
  const hn::Rebind<T, D> dt;
  const int lanes = static_cast<int>(hn::Lanes(d));
  int i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::PromoteTo(d, hn::LoadU(dt, from + i)), d, to + i);
  if (i < n) {
    HWY_ALIGN T rest[hn::MaxLanes(dt)] = {};
    HWY_ALIGN float wide[hn::MaxLanes(d)];
    std::copy_n(from + i, n - i, rest);
    hn::Store(hn::PromoteTo(d, hn::Load(dt, rest)), d, wide);
    std::copy_n(wide, n - i, to + i);
  }
}

/// Rows [first, first + count) as f32 [keys of a tile][width], zero where there is nothing.
void load_tile(const cache::Rows& rows, int first, int count, int width, float* HWY_RESTRICT tile) {
  for (int i = 0; i < padded(count, kRegisterRows); ++i) {
    float* const to = tile + static_cast<std::ptrdiff_t>(i) * width;
    if (i >= count) {
      std::fill_n(to, width, 0.0F);
      continue;
    }
    const std::byte* const from = rows.row(first + i);
    switch (rows.type) {
      case ElementType::f16:
        convert(reinterpret_cast<const hwy::float16_t*>(from), rows.dim, to);
        break;
      case ElementType::bf16:
        convert(reinterpret_cast<const hwy::bfloat16_t*>(from), rows.dim, to);
        break;
      default:
        cache::decode_row(rows.type, from, {to, static_cast<std::size_t>(rows.dim)});
        break;
    }
    std::fill(to + rows.dim, to + width, 0.0F);
  }
}

enum class Start { from_zero, from_memory };

/// c[m][lane] (+)= sum over k of a[m * a_row + k * a_step] * b[k][lane] for kRegisterRows rows and kVectors vectors of lanes, in registers.
template <int kVectors, Start kStart>
HWY_INLINE void register_tile(const float* HWY_RESTRICT a, int a_row, int a_step, const float* HWY_RESTRICT b, int depth, int stride,
                              float* HWY_RESTRICT c) {
  const D d;
  const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  V sum[kRegisterRows][kVectors];
  for (int m = 0; m < kRegisterRows; ++m) {
    for (int v = 0; v < kVectors; ++v) {
      sum[m][v] = kStart == Start::from_zero ? hn::Zero(d) : hn::Load(d, c + static_cast<std::ptrdiff_t>(m) * stride + v * lanes);
    }
  }
  for (int k = 0; k < depth; ++k) {
    V bk[kVectors];
    for (int v = 0; v < kVectors; ++v) bk[v] = hn::Load(d, b + static_cast<std::ptrdiff_t>(k) * stride + v * lanes);
    const float* const ak = a + static_cast<std::ptrdiff_t>(k) * a_step;
    for (int m = 0; m < kRegisterRows; ++m) {
      const V am = hn::Set(d, ak[static_cast<std::ptrdiff_t>(m) * a_row]);
      for (int v = 0; v < kVectors; ++v) sum[m][v] = hn::MulAdd(am, bk[v], sum[m][v]);
    }
  }
  for (int m = 0; m < kRegisterRows; ++m) {
    for (int v = 0; v < kVectors; ++v) hn::Store(sum[m][v], d, c + static_cast<std::ptrdiff_t>(m) * stride + v * lanes);
  }
}

/// The product for any number of rows (a multiple of kRegisterRows) and all lanes, one strip of lanes after the other so that b's strip
/// stays in the first-level cache.
template <Start kStart>
void multiply(const float* a, int a_row, int a_step, const float* b, int rows, int depth, int stride, float* c) {
  const int width = static_cast<int>(hn::Lanes(D()));
  constexpr int kVectors = HWY_TARGET <= HWY_AVX3 ? 3 : 1;  // 24 accumulators of 32 registers, 8 of 16
  int lane = 0;
  for (; lane + kVectors * width <= stride; lane += kVectors * width) {
    for (int m = 0; m < rows; m += kRegisterRows) {
      register_tile<kVectors, kStart>(a + static_cast<std::ptrdiff_t>(m) * a_row, a_row, a_step, b + lane, depth, stride,
                                      c + static_cast<std::ptrdiff_t>(m) * stride + lane);
    }
  }
  for (; lane < stride; lane += width) {
    for (int m = 0; m < rows; m += kRegisterRows) {
      register_tile<1, kStart>(a + static_cast<std::ptrdiff_t>(m) * a_row, a_row, a_step, b + lane, depth, stride,
                               c + static_cast<std::ptrdiff_t>(m) * stride + lane);
    }
  }
}

/// Queries into lanes, scaled so that logits are powers of 2; the state of the softmax to "nothing seen".
void begin_block(const Block& b) {
  const float scale = b.scale * std::numbers::log2e_v<float>;
  std::fill_n(b.q_lanes, static_cast<std::ptrdiff_t>(b.width) * b.lanes, 0.0F);
  std::fill_n(b.o_lanes, static_cast<std::ptrdiff_t>(b.width) * b.lanes, 0.0F);
  std::fill_n(b.base, b.lanes, kNothing);
  std::fill_n(b.sum, b.lanes, 0.0F);
  std::fill_n(b.limit, b.lanes, static_cast<float>(b.leading[0] - 1));
  for (int g = 0; g < b.group; ++g) {
    for (int t = 0; t < b.tokens; ++t) {
      const int lane = g * b.tokens + t;
      const float* const q = b.q + static_cast<std::ptrdiff_t>(t) * b.token_stride + static_cast<std::ptrdiff_t>(g) * b.head_dim;
      float* const to = b.q_lanes + b.first_of(lane);
      for (int i = 0; i < b.head_dim; ++i) to[static_cast<std::ptrdiff_t>(i) * b.strip] = q[i] * scale;
      b.limit[lane] = static_cast<float>(b.leading[t] - 1);
    }
  }
}

/// Logits s [rows][lanes] of keys first … to probabilities relative to the running maximum, which may rise: then what was summed before
/// shrinks. kMasked: the tile reaches beyond what some lane sees, or beyond the keys.
template <bool kMasked>
void softmax_tile(const Block& b, int first, int rows, float* HWY_RESTRICT s) {
  const D d;
  const int step = static_cast<int>(hn::Lanes(d));
  for (int lane = 0; lane < b.lanes; lane += step) {
    const V old_max = hn::Load(d, b.base + lane);
    const V limit = hn::Load(d, b.limit + lane);
    V top = old_max;
    for (int i = 0; i < rows; ++i) {
      float* const at = s + static_cast<std::ptrdiff_t>(i) * b.lanes + lane;
      V x = hn::Load(d, at);
      if (kMasked) {
        x = hn::IfThenElse(hn::Le(hn::Set(d, static_cast<float>(first + i)), limit), x, hn::Set(d, kNothing));
        hn::Store(x, d, at);
      }
      top = hn::Max(top, x);
    }
    // Where nothing was seen yet, -inf - -inf must not become NaN.
    const V base = hn::IfThenElse(hn::Eq(top, hn::Set(d, kNothing)), hn::Zero(d), top);
    V sum = hn::Zero(d);
    for (int i = 0; i < rows; ++i) {
      float* const at = s + static_cast<std::ptrdiff_t>(i) * b.lanes + lane;
      const V p = exp2_of_negative(d, hn::Sub(hn::Load(d, at), base));
      hn::Store(p, d, at);
      sum = hn::Add(sum, p);
    }
    const V shrink = exp2_of_negative(d, hn::Sub(old_max, base));
    hn::Store(hn::MulAdd(hn::Load(d, b.sum + lane), shrink, sum), d, b.sum + lane);
    hn::Store(top, d, b.base + lane);
    if (hn::AllTrue(d, hn::Eq(top, old_max))) continue;
    for (int i = 0; i < b.width; ++i) {
      float* const o = b.o_lanes + static_cast<std::ptrdiff_t>(i) * b.lanes + lane;
      hn::Store(hn::Mul(hn::Load(d, o), shrink), d, o);
    }
  }
}

/// One key more for one lane.
void fold_row(const Block& b, int lane, const float* HWY_RESTRICT key, const float* HWY_RESTRICT value) {
  const float* const q = b.q_lanes + b.first_of(lane);
  float s = 0;
  for (int i = 0; i < b.head_dim; ++i) s += q[static_cast<std::ptrdiff_t>(i) * b.strip] * key[i];
  const float top = std::max(b.base[lane], s);
  if (top == kNothing) return;
  const float shrink = std::exp2(b.base[lane] - top);
  const float p = std::exp2(s - top);
  b.base[lane] = top;
  b.sum[lane] = b.sum[lane] * shrink + p;
  float* const out = b.o_lanes + b.first_of(lane);
  for (int i = 0; i < b.head_dim; ++i) {
    float& o = out[static_cast<std::ptrdiff_t>(i) * b.strip];
    o = o * shrink + p * value[i];
  }
}

/// Folds the rows that single tokens see beside the leading ones.
void fold_own(const Block& b) {
  for (int t = 0; t < b.tokens; ++t) {
    if (b.own[t] < 0) continue;
    float* const key = b.tile;
    float* const value = b.tile + static_cast<std::ptrdiff_t>(kRegisterRows) * b.width;
    load_tile(b.keys, b.own[t], 1, b.width, key);
    load_tile(b.values, b.own[t], 1, b.width, value);
    for (int g = 0; g < b.group; ++g) fold_row(b, g * b.tokens + t, key, value);
  }
}

/// Logarithms of the sums, to base e.
void write_logsums(const Block& b) {
  for (int g = 0; g < b.group; ++g) {
    for (int t = 0; t < b.tokens; ++t) {
      const int lane = g * b.tokens + t;
      b.logsum[static_cast<std::ptrdiff_t>(t) * b.logsum_stride + g] = (b.base[lane] + std::log2(b.sum[lane])) * std::numbers::ln2_v<float>;
    }
  }
}

/// Divides and brings the lanes back into rows.
void end_block(const Block& b) {
  if (b.logsum != nullptr) write_logsums(b);
  for (int lane = 0; lane < b.lanes; ++lane) b.sum[lane] = b.sum[lane] > 0 ? 1.0F / b.sum[lane] : 0.0F;
  for (int g = 0; g < b.group; ++g) {
    for (int t = 0; t < b.tokens; ++t) {
      const int lane = g * b.tokens + t;
      float* const out = b.out + static_cast<std::ptrdiff_t>(t) * b.token_stride + static_cast<std::ptrdiff_t>(g) * b.head_dim;
      const float* const o = b.o_lanes + b.first_of(lane);
      for (int i = 0; i < b.head_dim; ++i) out[i] = o[static_cast<std::ptrdiff_t>(i) * b.strip] * b.sum[lane];
    }
  }
}

/// Retained tiles are relative to the maximum of their time: turns that into the factor which brings them to the final one and divides.
void weigh_retained(const Block& b) {
  const D d;
  const int step = static_cast<int>(hn::Lanes(d));
  for (int tile = b.first_retained; tile < b.end_retained; ++tile) {
    for (int lane = 0; lane < b.lanes; lane += step) {
      float* const at = b.weight_of(tile) + lane;
      const V then = hn::Load(d, at);
      const V shrink = exp2_of_negative(d, hn::Sub(then, hn::Load(d, b.base + lane)));
      const V nothing = hn::Zero(d);
      hn::Store(hn::IfThenElse(hn::Eq(then, hn::Set(d, kNothing)), nothing, hn::Mul(shrink, hn::Load(d, b.sum + lane))), d, at);
    }
  }
}

void run_tiles(const Block& b) {
  constexpr int kKeys = tile_keys(Products::f32);
  const int width = b.width;
  for (int first = 0, tile = 0; first < b.visible_keys(); first += kKeys, ++tile) {
    const int count = std::min(kKeys, b.visible_keys() - first);
    const int rows = padded(count, kRegisterRows);
    float* const p = b.retains(tile) ? b.tile_of(tile).floats : reinterpret_cast<float*>(b.work);
    load_tile(b.keys, first, count, width, b.tile);
    multiply<Start::from_zero>(b.tile, width, 1, b.q_lanes, rows, width, b.lanes, p);
    if (first + rows <= b.leading[0]) {
      softmax_tile<false>(b, first, rows, p);
    } else {
      softmax_tile<true>(b, first, rows, p);
    }
    if (b.retains(tile)) std::copy_n(b.base, b.lanes, b.weight_of(tile));
    load_tile(b.values, first, count, width, b.tile);
    multiply<Start::from_memory>(b.tile, 1, width, p, width, rows, b.lanes, b.o_lanes);
  }
}

void run(const Block& b) {
  begin_block(b);
  if (b.products == Products::f32) {
    run_tiles(b);
  } else {
    run_tiles_amx(b);
  }
  if (b.own != nullptr) fold_own(b);
  end_block(b);
  weigh_retained(b);
}

/// Gives the products of a key's probabilities and the weights to one of both, as vectors or, where a strip or the lanes end, one by one.
template <Products kProducts, class Vectors, class Singles>
HWY_INLINE void over_lanes(const Columns& c, int key, const Vectors& vectors, const Singles& singles) {
  const D d;
  const int step = static_cast<int>(hn::Lanes(d));
  for (int i = 0; i < c.lanes;) {
    const int lane = c.first_lane + i;
    const int end = std::min(c.lanes, i + c.p.strip - lane % c.p.strip);
    const float* const row = c.p.row(key, lane) - i;
    for (; i + step <= end; i += step) vectors(hn::Mul(load_retained<kProducts>(row + i, key), hn::LoadU(d, c.weight + i)));
    for (; i < end; ++i) singles(c.p.at(key, c.first_lane + i) * c.weight[i]);
  }
}

template <Products kProducts>
void add_columns_of(const Columns& c, float* HWY_RESTRICT out) {
  const D d;
  for (int i = 0; i < c.keys; ++i) {
    V sums = hn::Zero(d);
    float sum = 0;
    over_lanes<kProducts>(
        c, c.first_key + i, [&](V x) { sums = hn::Add(sums, x); }, [&](float x) { sum += x; });
    out[i] += hn::GetLane(hn::SumOfLanes(d, sums)) + sum;
  }
}

template <Products kProducts>
void raise_columns_of(const Columns& c, float* HWY_RESTRICT out) {
  const D d;
  for (int i = 0; i < c.keys; ++i) {
    V most = hn::Set(d, out[i]);
    over_lanes<kProducts>(
        c, c.first_key + i, [&](V x) { most = hn::Max(most, x); }, [&](float x) { most = hn::Max(most, hn::Set(d, x)); });
    out[i] = hn::GetLane(hn::MaxOfLanes(d, most));
  }
}

void add_columns(const Columns& c, float* out) {
  c.p.products == Products::f32 ? add_columns_of<Products::f32>(c, out) : add_columns_of<Products::bf16>(c, out);
}

void raise_columns(const Columns& c, float* out) {
  c.p.products == Products::f32 ? raise_columns_of<Products::f32>(c, out) : raise_columns_of<Products::bf16>(c, out);
}

}  // namespace winnow::attention::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace winnow::attention::cpu {

HWY_EXPORT(run);
HWY_EXPORT(add_columns);
HWY_EXPORT(raise_columns);

std::size_t work_bytes(const Block& b) {
  if (b.products == Products::bf16) return amx_bytes(b.width, b.lanes);
  return static_cast<std::size_t>(tile_keys(b.products)) * static_cast<std::size_t>(b.lanes) * sizeof(float);  // a tile's probabilities
}

void run_block(const Block& block) { HWY_DYNAMIC_DISPATCH(run)(block); }
void add_to_sums(const Columns& columns, float* out) { HWY_DYNAMIC_DISPATCH(add_columns)(columns, out); }
void raise_maxima(const Columns& columns, float* out) { HWY_DYNAMIC_DISPATCH(raise_columns)(columns, out); }

}  // namespace winnow::attention::cpu
#endif
