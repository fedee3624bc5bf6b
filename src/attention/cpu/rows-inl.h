// SPDX-License-Identifier: Apache-2.0
// Compiled once for each target: the guard toggles when foreach_target.h goes on to the next one.
#if defined(WINNOW_ATTENTION_CPU_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WINNOW_ATTENTION_CPU_ROWS_INL_H_
#undef WINNOW_ATTENTION_CPU_ROWS_INL_H_
#else
#define WINNOW_ATTENTION_CPU_ROWS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "attention/cpu/stretch.h"
#include "base/as_size.h"
#include "cache/element.h"

HWY_BEFORE_NAMESPACE();
namespace winnow::attention::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

/// Loads a vector of stored elements as f32.
HWY_INLINE V load(const float* from) { return hn::LoadU(D(), from); }

template <class T>
HWY_INLINE V load(const T* from) {
  const hn::Rebind<T, D> dt;
  return hn::PromoteTo(D(), hn::LoadU(dt, from));
}

/// Loads n elements, fewer than a vector, padded with zeros.
template <class T>
HWY_INLINE V load_n(const T* from, int n) {
  HWY_ALIGN T some[hn::MaxLanes(D())] = {};
  std::copy_n(from, n, some);
  return load(some);
}

HWY_INLINE void store_n(V v, float* to, int n) {
  HWY_ALIGN float some[hn::MaxLanes(D())];
  hn::Store(v, D(), some);
  std::copy_n(some, n, to);
}

/// ggml's blocks of 32 quantized values begin with their scale, an f16.
constexpr int kBlock = 32;
constexpr std::size_t kScaleBytes = 2;
constexpr std::size_t kBytesQ8 = kScaleBytes + kBlock;
constexpr std::size_t kBytesQ4 = kScaleBytes + kBlock / 2;

HWY_INLINE V scale_of(const std::byte* block) {
  const hn::CappedTag<float, 1> one;
  const hn::Rebind<hwy::float16_t, decltype(one)> half;
  hwy::float16_t scale;
  std::memcpy(&scale, block, sizeof scale);
  return hn::Set(D(), hn::GetLane(hn::PromoteTo(one, hn::LoadU(half, &scale))));
}

/// q8_0: 32 signed bytes, value = byte * scale.
inline void decode_q8(const std::byte* row, int dim, float* HWY_RESTRICT out) {
  const D d;
  const hn::RebindToSigned<D> di;
  const hn::Rebind<std::int8_t, D> bytes;
  const int step = static_cast<int>(hn::Lanes(d));
  for (int first = 0; first < dim; first += kBlock, row += kBytesQ8) {
    const V scale = scale_of(row);
    const auto* const from = reinterpret_cast<const std::int8_t*>(row + kScaleBytes);
    for (int i = 0; i < kBlock; i += step) {
      hn::StoreU(hn::Mul(hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(bytes, from + i))), scale), d, out + first + i);
    }
  }
}

/// q4_0: 16 bytes; the low nibbles are the first 16 values, the high ones the others; value = (nibble - 8) * scale.
inline void decode_q4(const std::byte* row, int dim, float* HWY_RESTRICT out) {
  const D d;
  const hn::RebindToSigned<D> di;
  const hn::Rebind<std::uint8_t, D> bytes;
  const int step = static_cast<int>(hn::Lanes(d));
  const auto eight = hn::Set(di, 8);
  for (int first = 0; first < dim; first += kBlock, row += kBytesQ4) {
    const V scale = scale_of(row);
    const auto* const from = reinterpret_cast<const std::uint8_t*>(row + kScaleBytes);
    for (int i = 0; i < kBlock / 2; i += step) {
      const auto both = hn::PromoteTo(di, hn::LoadU(bytes, from + i));
      const auto low = hn::Sub(hn::And(both, hn::Set(di, 15)), eight);
      const auto high = hn::Sub(hn::ShiftRight<4>(both), eight);
      hn::StoreU(hn::Mul(hn::ConvertTo(d, low), scale), d, out + first + i);
      hn::StoreU(hn::Mul(hn::ConvertTo(d, high), scale), d, out + first + kBlock / 2 + i);
    }
  }
}

template <class T>
HWY_INLINE void decode_plain(const T* row, int dim, float* HWY_RESTRICT out) {
  const int step = static_cast<int>(hn::Lanes(D()));
  int i = 0;
  for (; i + step <= dim; i += step) hn::StoreU(load(row + i), D(), out + i);
  if (i < dim) store_n(load_n(row + i, dim - i), out + i, dim - i);
}

inline void decode_row_of(const cache::Rows& rows, int index, float* HWY_RESTRICT out) {
  const std::byte* const row = rows.row(index);
  switch (rows.type) {
    case ElementType::q8_0:
      return decode_q8(row, rows.dim, out);
    case ElementType::q4_0:
      return decode_q4(row, rows.dim, out);
    case ElementType::f16:
      return decode_plain(reinterpret_cast<const hwy::float16_t*>(row), rows.dim, out);
    case ElementType::bf16:
      return decode_plain(reinterpret_cast<const hwy::bfloat16_t*>(row), rows.dim, out);
    case ElementType::f32:
      return decode_plain(reinterpret_cast<const float*>(row), rows.dim, out);
  }
}

/// Decodes at most kTogether rows to f32 in `memory` [kTogether][decoded_width(d)].
inline cache::Rows decoded(const cache::Rows& rows, float* memory) {
  const auto width = as_size(decoded_width(rows.dim));
  for (int i = 0; i < rows.count; ++i) decode_row_of(rows, i, memory + as_size(i) * width);
  return {reinterpret_cast<const std::byte*>(memory), width * sizeof(float), rows.count, rows.dim, ElementType::f32};
}

/// At most kTogether rows in a form that the kernels read: quantized ones decoded to f32 in `memory`
/// [kTogether][decoded_width(d)].
inline cache::Rows readable(const cache::Rows& rows, float* memory) {
  return rows.type == ElementType::q8_0 || rows.type == ElementType::q4_0 ? decoded(rows, memory) : rows;
}
}  // namespace winnow::attention::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard
