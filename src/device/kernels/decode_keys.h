// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/kernels/rows.h"
#include "device/kernels/turning.h"

namespace winnow::device {

/// Keys of a warp as factors of products with its queries, 8 N at a time. The order of columns in a product is free as
/// long as both factors agree: thread t of four reads octet o of a row at element octet(o, t).

/// Keys as stored.
template <class R, int D, int N>
class StoredKeys {
 public:
  using Product = typename R::Product;

  WINNOW_DEVICE StoredKeys(const DecodeTask& task, const DecodeItem& item, int lane)
      : rows_(item.keys, item.key_scales, task.dim), dim_(task.dim), quarter_(lane % 4) {}

  WINNOW_DEVICE int octet(int o, int quarter) const {
    return o / kOctets * 4 * R::kWidth + quarter * R::kWidth + o % kOctets * 8;
  }

  /// Begins to load keys; row(n) is the row of this thread's key among the n-th eight keys.
  template <class Row>
  WINNOW_DEVICE void load(Row row) {
    if constexpr (kAhead) {
      WINNOW_UNROLL
      for (int u = 0; u < kUnits; ++u) load_unit(u, row, loaded_[u]);
    }
  }

  template <class Row>
  WINNOW_DEVICE void multiply(const Words* queries, Row row, float (&c)[N][4]) {
    WINNOW_UNROLL
    for (int u = 0; u < kUnits; ++u) {
      typename R::Loaded(&loaded)[N] = loaded_[kAhead ? u : 0];
      if constexpr (!kAhead) load_unit(u, row, loaded);
      if (octet(u * kOctets, quarter_) >= dim_) zero(loaded);
      WINNOW_UNROLL
      for (int o = 0; o < kOctets; ++o) multiply_octet(queries + (u * kOctets + o) * 64, loaded, o, c);
    }
  }

 private:
  static constexpr int kOctets = R::kWidth / 8;
  static constexpr int kUnits = D / (4 * R::kWidth);
  /// Prefetches keys while others are processed, if there are enough registers.
  static constexpr bool kAhead = sizeof(typename R::Loaded) <= 20 || D <= 64;

  template <class Row>
  WINNOW_DEVICE void load_unit(int u, Row row, typename R::Loaded (&to)[N]) const {
    const int at = octet(u * kOctets, quarter_);
    WINNOW_UNROLL
    for (int n = 0; n < N; ++n) {
      if (at < dim_) to[n] = rows_.load(row(n), at);
    }
  }
  WINNOW_DEVICE static void zero(typename R::Loaded (&loaded)[N]) {
    WINNOW_UNROLL
    for (int n = 0; n < N; ++n) loaded[n] = {};
  }
  WINNOW_DEVICE static void multiply_octet(const Words* queries, const typename R::Loaded (&loaded)[N], int o,
                                           float (&c)[N][4]) {
    Factors<R> k[N];
    WINNOW_UNROLL
    for (int n = 0; n < N; ++n) k[n].set(loaded[n], o);
    WINNOW_UNROLL
    for (int half = 0; half < 2; ++half) {
      const Words a = queries[half * 32];
      WINNOW_UNROLL
      for (int n = 0; n < N; ++n) {
        WINNOW_UNROLL
        for (const Words& part : k[n].part) Product::multiply(c[n], a.w, part.w[2 * half], part.w[2 * half + 1]);
      }
    }
  }

  R rows_;
  int dim_;
  int quarter_;
  typename R::Loaded loaded_[kAhead ? kUnits : 1][N];
};

/// Keys that are first rotated to their entries' effective positions. An octet and its partner in the rotation are in
/// one thread.
template <class R, int D, int N>
class TurnedKeys {
 public:
  using Product = typename R::Product;

  WINNOW_DEVICE TurnedKeys(const DecodeTask& task, const DecodeItem& item, int lane)
      : rows_(item.keys, item.key_scales, task.dim), angles_(task.angles), dim_(task.dim), quarter_(lane % 4) {}

  WINNOW_DEVICE int octet(int o, int quarter) const {
    if (angles_.halves == 0) return o * 32 + quarter * 8;
    const int first = (o % kPairs * 4 + quarter) * 8;
    const int second = o / kPairs;
    if (first < angles_.pairs) return first + second * angles_.pairs;
    return 2 * first + second * 8;  // after the rotated elements
  }

  template <class Row>
  WINNOW_DEVICE void load(Row row) {
    if constexpr (kAhead) {
      WINNOW_UNROLL
      for (int o = 0; o < D / 32; ++o) load_octet(o, row, loaded_[o]);
    }
  }

  /// position(n) is the position of this thread's key.
  template <class Row, class Position>
  WINNOW_DEVICE void multiply(const Words* queries, Row row, Position position, float (&c)[N][4]) {
    WINNOW_UNROLL
    for (int o = 0; o < kPairs; ++o) {
      typename R::Loaded(&first)[N] = loaded_[kAhead ? o : 0];
      typename R::Loaded(&second)[N] = loaded_[kAhead ? o + kPairs : 1];
      if constexpr (!kAhead) {
        load_octet(o, row, first);
        load_octet(o + kPairs, row, second);
      }
      WINNOW_UNROLL
      for (int n = 0; n < N; ++n) {
        float x[8];
        float y[8];
        numbers(first[n], octet(o, quarter_), x);
        numbers(second[n], octet(o + kPairs, quarter_), y);
        turn(Turn(angles_, position(n)), o, x, y);
        multiply_octet(queries + o * 64, x, c[n]);
        multiply_octet(queries + (o + kPairs) * 64, y, c[n]);
      }
    }
  }

 private:
  static constexpr int kPairs = D / 64;
  static constexpr bool kAhead = sizeof(typename R::Loaded) <= 16 && D <= 128;

  template <class Row>
  WINNOW_DEVICE void load_octet(int o, Row row, typename R::Loaded (&to)[N]) const {
    const int at = octet(o, quarter_);
    WINNOW_UNROLL
    for (int n = 0; n < N; ++n) {
      if (at < dim_) to[n] = rows_.load(row(n), at);
    }
  }
  WINNOW_DEVICE void numbers(const typename R::Loaded& loaded, int at, float (&x)[8]) const {
    typename R::Loaded there = {};
    if (at < dim_) there = loaded;
    R::numbers(there, 0, x);
  }
  WINNOW_DEVICE void turn(const Turn& by, int o, float (&x)[8], float (&y)[8]) const {
    const int at = octet(o, quarter_);
    if (angles_.halves == 0) {
      turn_adjacent(by, angles_, at, x);
      turn_adjacent(by, angles_, octet(o + kPairs, quarter_), y);
    } else if (at < angles_.pairs) {
      turn_halves(by, at, x, y);
    }
  }
  WINNOW_DEVICE static void multiply_octet(const Words* queries, const float (&x)[8], float (&c)[4]) {
    Words rounded;
    Words rest;
    split<Product>(x, rounded, rest);
    WINNOW_UNROLL
    for (int half = 0; half < 2; ++half) {
      const Words a = queries[half * 32];
      Product::multiply(c, a.w, rounded.w[2 * half], rounded.w[2 * half + 1]);
      Product::multiply(c, a.w, rest.w[2 * half], rest.w[2 * half + 1]);
    }
  }

  R rows_;
  const Angles& angles_;
  int dim_;
  int quarter_;
  typename R::Loaded loaded_[kAhead ? D / 32 : 2][N];
};

}  // namespace winnow::device
