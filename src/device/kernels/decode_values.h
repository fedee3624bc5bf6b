// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/kernels/rows.h"

namespace winnow::device {

/// Values of a warp as factors of products with probabilities, 16 G at a time. Column c, of eight, of the i-th product
/// of octet o is element octet(o, c) + i.
template <class R, int D, int G>
class StoredValues {
 public:
  using Product = typename R::Product;

  WINNOW_DEVICE StoredValues(const DecodeTask& task, const DecodeItem& item, int lane)
      : rows_(item.values, item.value_scales, task.dim), dim_(task.dim), column_(lane / 4) {}

  WINNOW_DEVICE static int octet(int o, int column) {
    return o / kOctets * 8 * R::kWidth + column * R::kWidth + o % kOctets * 8;
  }

  /// Begins to load values. This thread has four entries of each group of 16; row(group, e) is the row of its entry e.
  template <class Row>
  WINNOW_DEVICE void load(Row row) {
    if constexpr (kAhead) {
      WINNOW_UNROLL
      for (int u = 0; u < kUnits; ++u) load_unit(u, row, loaded_[u]);
    }
  }

  /// Adds to the sums of eight elements of each octet, [octet][8].
  template <class Row>
  WINNOW_DEVICE void multiply(const std::uint32_t (&p)[G][4], Row row, float (&out)[D / 8][4]) {
    WINNOW_UNROLL
    for (int u = 0; u < kUnits; ++u) {
      typename R::Loaded(&loaded)[G][4] = loaded_[kAhead ? u : 0];
      if constexpr (!kAhead) load_unit(u, row, loaded);
      WINNOW_UNROLL
      for (int group = 0; group < G; ++group) {
        WINNOW_UNROLL
        for (int o = 0; o < kOctets; ++o) multiply_octet(p[group], loaded[group], u * kOctets + o, out);
      }
    }
  }

 private:
  static constexpr int kOctets = R::kWidth / 8;
  static constexpr int kUnits = D / (8 * R::kWidth);
  static constexpr bool kAhead = sizeof(typename R::Loaded) <= 20 && D <= 128;

  template <class Row>
  WINNOW_DEVICE void load_unit(int u, Row row, typename R::Loaded (&to)[G][4]) const {
    const int at = octet(u * kOctets, column_);
    WINNOW_UNROLL
    for (int group = 0; group < G; ++group) {
      WINNOW_UNROLL
      for (int e = 0; e < 4; ++e) {
        if (at < dim_) to[group][e] = rows_.load(row(group, e), at);
      }
    }
  }

  WINNOW_DEVICE void multiply_octet(const std::uint32_t (&p)[4], const typename R::Loaded (&loaded)[4], int o,
                                    float (&out)[D / 8][4]) const {
    const bool there = octet(o / kOctets * kOctets, column_) < dim_;
    Factors<R> v[4] = {};
    WINNOW_UNROLL
    for (int e = 0; e < 4; ++e) {
      if (there) v[e].set(loaded[e], o % kOctets);
    }
    WINNOW_UNROLL
    for (int i = 0; i < 8; ++i) {
      const std::uint32_t which = i % 2 == 0 ? 0x5410U : 0x7632U;  // the low or the high halves of both
      WINNOW_UNROLL
      for (int part = 0; part < Factors<R>::kParts; ++part) {
        Product::multiply(out[o * 8 + i], p, bytes_of(v[0].part[part].w[i / 2], v[1].part[part].w[i / 2], which),
                          bytes_of(v[2].part[part].w[i / 2], v[3].part[part].w[i / 2], which));
      }
    }
  }

  R rows_;
  int dim_;
  int column_;
  typename R::Loaded loaded_[kAhead ? kUnits : 1][G][4];
};

}  // namespace winnow::device
