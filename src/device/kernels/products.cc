// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>

#include "device/kernels/calls.h"
#include "device/kernels/dispatch.h"
#include "device/kernels/rows.h"
#include "device/kernels/tile.h"

namespace winnow::device {
namespace {

inline constexpr int kProductRows = 128;  ///< of a block, one for each thread

/// A block of rows, which pass through shared memory, so that each thread adds up a row of its own in order.
template <class T, int D>
WINNOW_KERNEL(kProductRows)
products_kernel(const ProductsTask task) {
  const Tile<D> tile{reinterpret_cast<std::uint16_t*>(shared_memory())};
  const int first = block_x() * kProductRows;
  const auto* const from = static_cast<const std::uint16_t*>(task.rows) + static_cast<std::size_t>(first) * task.dim;
  copy_rows<kProductRows, kProductRows>(tile, task.dim, task.count - first,
                                        [=, dim = task.dim](int row) { return from + row * dim; });
  commit_copies();
  wait_copies<0>();
  sync_block();
  if (first + thread() >= task.count) return;
  double sum = 0;
  for (int column = 0; column * 8 < task.dim; ++column) {
    float x[8];
    PlainRows<T>::numbers(*reinterpret_cast<const Words*>(tile.at(thread(), column)), 0, x);
    WINNOW_UNROLL
    for (int i = 0; i < 8; ++i) {
      const float product = x[i] * (task.vector != nullptr ? task.vector[column * 8 + i] : x[i]);
      sum += static_cast<double>(product);
    }
  }
  task.out[first + thread()] = sum;
}

}  // namespace

const char* products(const ProductsTask& task, void* stream) {
  return for_element_and_dim(task.element, task.dim, [&]<class T, int D>() {
    const Grid grid{(task.count + kProductRows - 1) / kProductRows, 1, kProductRows, Tile<D>::bytes(kProductRows)};
    return launch<products_kernel<T, D>>(grid, stream, task);
  });
}

}  // namespace winnow::device
