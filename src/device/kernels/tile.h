// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/kernels/primitives.h"

namespace winnow::device {

inline constexpr float kLog2e = 1.4426950408889634F;
/// Less than any logit, but finite, so that differences are numbers.
inline constexpr float kNever = -1e30F;

/// Rows of D 16-bit elements in shared memory. Columns of 16 bytes are swizzled by row, so that eight rows of one
/// column, or eight columns of one row, are in different banks. REQUIRES: the first row is aligned to the bytes of a
/// row.
template <int D>
struct Tile {
  static constexpr int kColumns = D / 8;
  static constexpr int bytes(int rows) { return rows * D * 2; }

  std::uint16_t* data;

  WINNOW_DEVICE std::uint16_t* at(int row, int column) const { return data + row * D + (column ^ row % 8) * 8; }
  WINNOW_DEVICE Tile after(int rows) const { return {data + rows * D}; }

  /// Address of a row and column for walk().
  WINNOW_DEVICE SharedAddress start(int row, int column) const { return address_of(at(row, column)); }
  /// Moves from an address with an even column, or the one after it, down by `rows`, a multiple of 8, and to the column
  /// that differs by the bits of 2 `pairs`. A single instruction; otherwise a kernel would keep an address for each
  /// column.
  WINNOW_DEVICE static SharedAddress walk(SharedAddress from, int pairs, int rows) {
    return (from ^ static_cast<SharedAddress>(pairs * 32)) + static_cast<SharedAddress>(rows * D * 2);
  }
};

/// Begins to copy rows into a tile, by a block of `Threads` threads. `address` gives the address of row r. Rows from
/// `count` on and elements from `dim` on are zeros. Each thread stays in one column.
template <int Rows, int Threads, int D, class Address>
WINNOW_DEVICE void copy_rows(Tile<D> to, int dim, int count, Address address) {
  constexpr int kStep = Threads / Tile<D>::kColumns;
  static_assert(Threads % Tile<D>::kColumns == 0 && Rows % kStep == 0);
  const int column = thread() % Tile<D>::kColumns;
  const int first = thread() / Tile<D>::kColumns;
  const bool there = column * 8 < dim;
  WINNOW_UNROLL
  for (int i = 0; i < Rows / kStep; ++i) {
    const int row = first + i * kStep;
    copy_async(to.at(row, column), address(row) + column * 8, there && row < count);
  }
}

/// Adds products of 16 rows of `a` (fragments by load_matrices) and 16 rows of `b` over 16 columns to two fragments.
template <class T>
WINNOW_DEVICE void multiply_pair(float (&low)[4], float (&high)[4], const std::uint32_t (&a)[4],
                                 const std::uint32_t (&b)[4]) {
  T::multiply(low, a, b[0], b[1]);
  T::multiply(high, a, b[2], b[3]);
}

/// The row and column of a tile that this lane passes to load_matrices: for 16 rows as left or as right factors, of 16
/// columns each.
struct Lane {
  int lane;

  WINNOW_DEVICE int left_row() const { return lane % 16; }
  WINNOW_DEVICE int left_column() const { return lane / 16; }
  WINNOW_DEVICE int right_row() const { return lane % 8 + lane / 16 * 8; }
  WINNOW_DEVICE int right_column() const { return lane / 8 % 2; }
};

/// Products of 16 x Strips rows of `left`, from row `first` on, and the first 8 x Octets rows of `right`.
template <class T, int D, int Strips, int Octets>
WINNOW_DEVICE void multiply_rows(Tile<D> left, int first, Tile<D> right, Lane own, float (&x)[Strips][Octets][4]) {
  WINNOW_UNROLL
  for (int s = 0; s < Strips; ++s) {
    WINNOW_UNROLL
    for (int i = 0; i < Octets; ++i) {
      WINNOW_UNROLL
      for (int e = 0; e < 4; ++e) x[s][i][e] = 0;
    }
  }
  const SharedAddress of_left = left.start(first + own.left_row(), own.left_column());
  const SharedAddress of_right = right.start(own.right_row(), own.right_column());
  WINNOW_UNROLL
  for (int k = 0; k < D / 16; ++k) {
    std::uint32_t a[Strips][4];
    WINNOW_UNROLL
    for (int s = 0; s < Strips; ++s) load_matrices(a[s], Tile<D>::walk(of_left, k, s * 16));
    WINNOW_UNROLL
    for (int n = 0; n < Octets / 2; ++n) {
      std::uint32_t b[4];
      load_matrices(b, Tile<D>::walk(of_right, k, n * 16));
      WINNOW_UNROLL
      for (int s = 0; s < Strips; ++s) multiply_pair<T>(x[s][2 * n], x[s][2 * n + 1], a[s], b);
    }
  }
}

/// Scale of packed queries: their products are logits in base 2, or with a soft cap the arguments of its tanh.
WINNOW_DEVICE float packed_scale(float scale, float cap) { return cap > 0 ? scale / cap : scale * kLog2e; }

/// cap tanh(x) in base 2, with an error of 1e-7 of the cap.
WINNOW_DEVICE float capped(float x, float cap) { return cap * kLog2e * (1 - divide(2, 1 + exp2(2 * kLog2e * x))); }

/// True if a query sees a key: the query is at or after the key, by less than `reach`; 0: by any distance.
WINNOW_DEVICE bool sees(int query, int key, int reach) { return key <= query && (reach == 0 || query - key < reach); }

}  // namespace winnow::device
