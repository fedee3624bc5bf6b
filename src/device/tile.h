// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/primitives.h"

namespace winnow::device {

inline constexpr float kLog2e = 1.4426950408889634F;
/// Less than any logit; finite, so that differences are numbers.
inline constexpr float kNever = -1e30F;

/// Rows of D elements of 16 bits in shared memory. Columns of 16 bytes are swizzled by their row, so that eight rows of
/// one column, or eight columns of one row, lie in different banks.
template <int D>
struct Tile {
  static constexpr int kColumns = D / 8;
  static constexpr int bytes(int rows) { return rows * D * 2; }

  std::uint16_t* data;

  WINNOW_DEVICE std::uint16_t* at(int row, int column) const { return data + row * D + (column ^ row % 8) * 8; }
  WINNOW_DEVICE Tile after(int rows) const { return {data + rows * D}; }
};

/// Begins to copy the rows of a tile by a block of so many threads. `address` gives where row r of the tile lies, null:
/// nowhere, and the row is zeros. So are elements from `dim` on.
template <int Rows, int Threads, int D, class Address>
WINNOW_DEVICE void copy_rows(Tile<D> to, int dim, Address address) {
  constexpr int kPieces = Rows * Tile<D>::kColumns;
  for (int i = thread(); i < kPieces; i += Threads) {
    const int row = i / Tile<D>::kColumns;
    const int column = i % Tile<D>::kColumns;
    const std::uint16_t* const from = address(row);
    copy_async(to.at(row, column), from + column * 8, from != nullptr && column * 8 < dim);
  }
}

/// Products of 16 rows of `a` (fragments by load_matrices) with 16 rows of `b` over 16 columns: adds to two fragments.
template <class T>
WINNOW_DEVICE void multiply_pair(float (&low)[4], float (&high)[4], const std::uint32_t (&a)[4],
                                 const std::uint32_t (&b)[4]) {
  T::multiply(low, a, b[0], b[1]);
  T::multiply(high, a, b[2], b[3]);
}

/// The row and column of a tile that this lane names to load_matrices: for 16 rows as left factors, and for 16 rows as
/// right ones, of 16 columns each.
struct Lane {
  int lane;

  WINNOW_DEVICE int left_row() const { return lane % 16; }
  WINNOW_DEVICE int left_column() const { return lane / 16; }
  WINNOW_DEVICE int right_row() const { return lane % 8 + lane / 16 * 8; }
  WINNOW_DEVICE int right_column() const { return lane / 8 % 2; }
};

/// Queries are packed so that their products are logits in base 2, or with a soft cap what its tanh takes.
WINNOW_DEVICE float packed_scale(float scale, float cap) { return cap > 0 ? scale / cap : scale * kLog2e; }

/// cap tanh(x) in base 2. Its error is 1e-7 of the cap.
WINNOW_DEVICE float capped(float x, float cap) {
  return cap * kLog2e * (1 - divide(2, 1 + exp2(2 * kLog2e * x)));
}

/// Whether a query and a key are seen together, the query at or after the key by less than `reach`; 0: by any distance.
WINNOW_DEVICE bool sees(int query, int key, int reach) { return key <= query && (reach == 0 || query - key < reach); }

}  // namespace winnow::device
