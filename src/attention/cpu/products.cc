// SPDX-License-Identifier: Apache-2.0
#include "attention/products.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/cpu/products.cc"
#include <hwy/foreach_target.h>
// Must follow foreach_target.h, which selects the target of each compilation.
#include <hwy/highway.h>

#include "attention/cpu/logits-inl.h"
#include "base/as_size.h"

HWY_BEFORE_NAMESPACE();
namespace winnow::attention::cpu::HWY_NAMESPACE {

/// Rows of `left` by vectors of columns in registers: 8 accumulators.
constexpr int kRows = 4;
constexpr int kVectors = 2;

/// Products of some rows with kVectors vectors of columns.
template <int kCount>
HWY_INLINE void tile(const float* left, int dim, const float* columns, int stride, float* out) {
  const D d;
  const int step = static_cast<int>(hn::Lanes(d));
  V sum[kCount][kVectors];
  HWY_UNROLL(4)
  for (auto& row : sum) {
    HWY_UNROLL(2)
    for (V& v : row) v = hn::Zero(d);
  }
  for (int c = 0; c < dim; ++c) {
    V right[kVectors];
    HWY_UNROLL(2)
    for (int v = 0; v < kVectors; ++v)
      right[v] = hn::LoadU(d, columns + static_cast<std::ptrdiff_t>(c) * stride + v * step);
    HWY_UNROLL(4)
    for (int i = 0; i < kCount; ++i) {
      const V x = hn::Set(d, left[static_cast<std::ptrdiff_t>(i) * dim + c]);
      HWY_UNROLL(2)
      for (int v = 0; v < kVectors; ++v) sum[i][v] = hn::MulAdd(x, right[v], sum[i][v]);
    }
  }
  HWY_UNROLL(4)
  for (int i = 0; i < kCount; ++i) {
    HWY_UNROLL(2)
    for (int v = 0; v < kVectors; ++v)
      hn::StoreU(sum[i][v], d, out + static_cast<std::ptrdiff_t>(i) * stride + v * step);
  }
}

template <int kCount>
void rows_of(const float* left, int dim, const float* columns, int stride, float* out) {
  const int step = kVectors * static_cast<int>(hn::Lanes(D()));
  for (int j = 0; j < stride; j += step) tile<kCount>(left, dim, columns + j, stride, out + j);
}

void multiply(const float* left, int rows, int dim, const float* columns, int stride, float* out) {
  int i = 0;
  for (; i + kRows <= rows; i += kRows) {
    rows_of<kRows>(left + static_cast<std::ptrdiff_t>(i) * dim, dim, columns, stride,
                   out + static_cast<std::ptrdiff_t>(i) * stride);
  }
  for (; i < rows; ++i) {
    rows_of<1>(left + static_cast<std::ptrdiff_t>(i) * dim, dim, columns, stride,
               out + static_cast<std::ptrdiff_t>(i) * stride);
  }
}

/// For at most kStretchKeys rows; `memory` [kStretchKeys].
void add_products_of(const float* query, const cache::Rows& rows, float* memory, float* out) {
  const Heads one{query, memory, nullptr};
  switch (rows.type) {
    case ElementType::f16:
      logits_of<1, hwy::float16_t>(one, rows);
      break;
    case ElementType::bf16:
      logits_of<1, hwy::bfloat16_t>(one, rows);
      break;
    default:
      logits_of<1, float>(one, rows);
      break;
  }
  for (int i = 0; i < rows.count; ++i) out[i] += memory[i];
}

/// Dot products of kKeysTogether rows with the query, and the rows' squared norms; the last row is repeated if fewer
/// are left.
template <class T>
HWY_INLINE void products_and_squares(const cache::Rows& rows, int first, const float* query, float* dots,
                                     float* squares) {
  const D d;
  const int step = static_cast<int>(hn::Lanes(d));
  const T* row[kKeysTogether];
  V product[kKeysTogether];
  V square[kKeysTogether];
  HWY_UNROLL(4)
  for (int j = 0; j < kKeysTogether; ++j) {
    row[j] = reinterpret_cast<const T*>(rows.row(std::min(first + j, rows.count - 1)));
    product[j] = square[j] = hn::Zero(d);
  }
  for (int c = 0; c < rows.dim; c += step) {
    const bool whole = c + step <= rows.dim;
    const V y = whole ? load(query + c) : load_n(query + c, rows.dim - c);
    HWY_UNROLL(4)
    for (int j = 0; j < kKeysTogether; ++j) {
      const V x = whole ? load(row[j] + c) : load_n(row[j] + c, rows.dim - c);
      product[j] = hn::MulAdd(x, y, product[j]);
      square[j] = hn::MulAdd(x, x, square[j]);
    }
  }
  sum_elements(product, dots);
  sum_elements(square, squares);
}

/// Selects rows; without gates, all of them.
struct Gates {
  const float* gates;
  float least;

  bool open(int first, int end) const {
    return gates == nullptr || std::any_of(gates + first, gates + end, [&](float x) { return !(std::abs(x) < least); });
  }
  Gates from(int first) const { return {gates == nullptr ? nullptr : gates + first, least}; }
};

template <class T>
void cosines_of(const Gates& gates, const cache::Rows& rows, const float* query, float query_length, float* out) {
  for (int first = 0; first < rows.count; first += kKeysTogether) {
    const int end = std::min(first + kKeysTogether, rows.count);
    if (!gates.open(first, end)) {
      std::fill(out + first, out + end, 0.0F);
      continue;
    }
    float dots[kKeysTogether];
    float squares[kKeysTogether];
    products_and_squares<T>(rows, first, query, dots, squares);
    for (int j = first; j < end; ++j) {
      const float length = std::sqrt(squares[j - first]) * query_length;
      out[j] = length > 0 ? dots[j - first] / length : 0.0F;
    }
  }
}

void cosines_of_rows(const float* gates, float least, const cache::Rows& rows, const float* query, float query_length,
                     float* memory, float* out) {
  for (int first = 0; first < rows.count; first += kTogether) {
    const cache::Rows some = readable(rows.slice(first, std::min(kTogether, rows.count - first)), memory);
    const Gates of_some = Gates{gates, least}.from(first);
    switch (some.type) {
      case ElementType::f16:
        cosines_of<hwy::float16_t>(of_some, some, query, query_length, out + first);
        break;
      case ElementType::bf16:
        cosines_of<hwy::bfloat16_t>(of_some, some, query, query_length, out + first);
        break;
      default:
        cosines_of<float>(of_some, some, query, query_length, out + first);
        break;
    }
  }
}

}  // namespace winnow::attention::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace winnow::attention {

namespace {

/// Two of the widest vectors of any target.
constexpr int kColumnsTogether = 32;

}  // namespace

// Dispatched in the namespace of the export: with a single target, HWY_DYNAMIC_DISPATCH takes no qualified name.
namespace cpu {

HWY_EXPORT(multiply);
void multiply(const float* left, int rows, int dim, const float* columns, int stride, float* out) {
  HWY_DYNAMIC_DISPATCH(multiply)(left, rows, dim, columns, stride, out);
}

HWY_EXPORT(add_products_of);
void add_products_of(const float* query, const cache::Rows& rows, float* memory, float* out) {
  HWY_DYNAMIC_DISPATCH(add_products_of)(query, rows, memory, out);
}

HWY_EXPORT(cosines_of_rows);
void cosines_of_rows(const float* gates, float least, const cache::Rows& rows, const float* query, float query_length,
                     float* memory, float* out) {
  HWY_DYNAMIC_DISPATCH(cosines_of_rows)(gates, least, rows, query, query_length, memory, out);
}

}  // namespace cpu

PackedRows::PackedRows(int count, int dim)
    : dim_(dim),
      count_(count),
      stride_((count + kColumnsTogether - 1) / kColumnsTogether * kColumnsTogether),
      columns_(as_size(dim) * as_size(stride_)) {}

PackedRows::PackedRows(std::span<const float> rows, int dim) : PackedRows(static_cast<int>(rows.size()) / dim, dim) {
  for (int c = 0; c < dim; ++c) {
    float* const column = columns_.data() + static_cast<std::ptrdiff_t>(c) * stride_;
    for (int i = 0; i < count_; ++i) column[i] = rows[as_size(i) * as_size(dim) + as_size(c)];
  }
}

PackedRows PackedRows::of_columns(std::span<const float> columns, int count) {
  PackedRows out(count, static_cast<int>(columns.size()) / count);
  for (int c = 0; c < out.dim_; ++c) {
    const auto column = columns.subspan(as_size(c) * as_size(count), as_size(count));
    std::copy(column.begin(), column.end(), out.columns_.begin() + static_cast<std::ptrdiff_t>(c) * out.stride_);
  }
  return out;
}

void PackedRows::multiply(std::span<const float> left, std::span<float> out) const {
  cpu::multiply(left.data(), static_cast<int>(left.size()) / dim_, dim_, columns_.data(), stride_, out.data());
}

void add_products(std::span<const float> query, const cache::Rows& rows, std::span<float> out) {
  alignas(64) float memory[cpu::kStretchKeys];
  for (int first = 0; first < rows.count; first += cpu::kStretchKeys) {
    const int count = std::min(cpu::kStretchKeys, rows.count - first);
    cpu::add_products_of(query.data(), rows.slice(first, count), memory, out.data() + first);
  }
}

void cosines(const cache::Rows& rows, std::span<const float> query, std::span<float> out) {
  cosines_where({}, 0, rows, query, out);
}

void cosines_where(std::span<const float> gates, float least, const cache::Rows& rows, std::span<const float> query,
                   std::span<float> out) {
  double square = 0;
  for (const float x : query) square += static_cast<double>(x) * x;
  std::vector<float> memory(as_size(cpu::kTogether) * as_size(cpu::decoded_width(rows.dim)));
  cpu::cosines_of_rows(gates.empty() ? nullptr : gates.data(), least, rows, query.data(),
                       static_cast<float>(std::sqrt(square)), memory.data(), out.data());
}

}  // namespace winnow::attention
#endif
