// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>

#include "device/kernels/calls.h"
#include "device/kernels/dispatch.h"
#include "device/kernels/tile.h"

namespace winnow::device {
namespace {

/// Share of a block: 16 x kStrips keys for each warp, which loops over tiles of kQueries observed queries.
template <int D>
struct ObserveShape {
  static constexpr int kWarps = 8;
  static constexpr int kStrips = D <= 128 ? 2 : 1;
  static constexpr int kQueries = D <= 128 ? 64 : 32;
  static constexpr int kThreads = kWarps * 32;
  static constexpr int kKeys = 16 * kWarps * kStrips;
  static constexpr int kRows = Tile<D>::bytes(kKeys + 2 * kQueries);
  static constexpr int kShared = kRows + 512;  // its end is also a multiple of a row's bytes
};

/// A block of keys of one query head. Products have keys as rows, so that each thread reduces over its own columns.
template <class T, int D>
class ObserveBlock {
 public:
  using Shape = ObserveShape<D>;

  WINNOW_DEVICE explicit ObserveBlock(const ObserveTask& task)
      : t_(task),
        head_(block_y()),
        block_(task.begin + block_x() * Shape::kKeys),
        keys_{reinterpret_cast<std::uint16_t*>(shared_memory())},
        own_{thread() % 32} {
    last_key_ = t_.first + t_.count;
    last_key_ = t_.end < last_key_ ? t_.end : last_key_;
  }

  WINNOW_DEVICE void run() {
    const int tiles = (t_.observed + Shape::kQueries - 1) / Shape::kQueries;
    int tile = first_tile(tiles);
    if (tile >= tiles || !is_seen(tile)) return;  // the same for all threads
    copy_keys();
    copy_tile(tile);
    share(tile, less(tile));
    for (int s = 0; s < Shape::kStrips; ++s) of_key_[s][0] = of_key_[s][1] = 0;
    for (bool more = true; more; ++tile) {
      wait_copies<0>();
      sync_block();  // the tile has arrived, and the previous one is no longer read
      more = tile + 1 < tiles && is_seen(tile + 1);
      if (more) copy_tile(tile + 1);
      const float next = more ? less(tile + 1) : 0;  // loaded while the tile is observed
      observe_tile(tile);
      if (more) share(tile + 1, next);
    }
    store();
  }

 private:
  WINNOW_DEVICE Tile<D> queries(int tile) const { return keys_.after(Shape::kKeys + tile % 2 * Shape::kQueries); }
  /// Subtrahends of the logits of each query in a tile, which make their powers of 2 the probabilities times the
  /// query's weight.
  WINNOW_DEVICE float* less_of(int tile) const {
    return reinterpret_cast<float*>(shared_memory() + Shape::kRows) + tile % 2 * Shape::kQueries;
  }

  /// Index of an observed query in the chunk.
  WINNOW_DEVICE int query(int i) const {
    const int existing = i < t_.observed ? i : t_.observed - 1;
    return t_.rows != nullptr ? t_.rows[existing] : existing;
  }
  /// The first tile with a query that is recorded at or after the block's first key.
  WINNOW_DEVICE int first_tile(int tiles) const {
    int low = 0;
    int high = tiles;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (t_.first + query(middle * Shape::kQueries + Shape::kQueries - 1) >= block_) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }
  /// True if the tile's first query reaches back to a key of the block.
  WINNOW_DEVICE bool is_seen(int tile) const {
    return t_.reach == 0 || t_.first + query(tile * Shape::kQueries) - (block_ + Shape::kKeys - 1) < t_.reach;
  }

  WINNOW_DEVICE void copy_keys() const {
    const std::size_t lane = static_cast<std::size_t>(head_ / (t_.heads / t_.kv_heads)) * t_.capacity;
    const auto* const from = static_cast<const std::uint16_t*>(t_.keys) + (lane + block_) * t_.dim;
    copy_rows<Shape::kKeys, Shape::kThreads>(keys_, t_.dim, last_key_ - block_,
                                             [=, dim = t_.dim](int row) { return from + row * dim; });
  }

  WINNOW_DEVICE void copy_tile(int tile) const {
    const int first = tile * Shape::kQueries;
    const auto* const from =
        static_cast<const std::uint16_t*>(t_.packed) + static_cast<std::size_t>(head_) * t_.count * t_.dim;
    copy_rows<Shape::kQueries, Shape::kThreads>(queries(tile), t_.dim, t_.observed - first, [=, this](int row) {
      return from + static_cast<std::size_t>(query(first + row)) * t_.dim;
    });
    commit_copies();
  }

  /// Subtrahend of this thread's query in a tile. Infinite without a query, whose probabilities are then 0.
  WINNOW_DEVICE float less(int tile) const {
    const int i = tile * Shape::kQueries + thread();
    if (thread() >= Shape::kQueries || i >= t_.observed) return infinity();
    const float lse = t_.lse[static_cast<std::size_t>(query(i)) * t_.heads + head_];
    return t_.weights != nullptr ? lse - log2(t_.weights[i]) : lse;
  }
  WINNOW_DEVICE void share(int tile, float mine) const {
    if (thread() < Shape::kQueries) less_of(tile)[thread()] = mine;
  }

  WINNOW_DEVICE void observe_tile(int tile) {
    float x[Shape::kStrips][Shape::kQueries / 8][4];
    multiply_rows<T>(keys_, thread() / 32 * Shape::kStrips * 16, queries(tile), own_, x);
    WINNOW_UNROLL
    for (int s = 0; s < Shape::kStrips; ++s) limit(tile, x[s], block_ + (thread() / 32 * Shape::kStrips + s) * 16);
    const float* const off = less_of(tile);
    if (t_.reduction == Reduction::sum) {
      reduce(x, off, [](float a, float b) { return a + b; });
    } else {
      reduce(x, off, [](float a, float b) { return a > b ? a : b; });
    }
  }

  /// Applies the soft cap, and sets kNever where a query of the tile does not see a key of a strip, or is too far from
  /// it.
  WINNOW_DEVICE void limit(int tile, float (&x)[Shape::kQueries / 8][4], int first_key) const {
    if (t_.cap > 0) {
      WINNOW_UNROLL
      for (int i = 0; i < Shape::kQueries / 8; ++i) {
        WINNOW_UNROLL
        for (int e = 0; e < 4; ++e) x[i][e] = capped(x[i][e], t_.cap);
      }
    }
    const int first = tile * Shape::kQueries;
    const bool all_see = t_.first + query(first) >= first_key + 15 &&
                         (t_.reach == 0 || t_.first + query(first + Shape::kQueries - 1) - first_key < t_.reach);
    if (all_see) return;
    const int key = first_key + own_.lane / 4;
    WINNOW_UNROLL
    for (int i = 0; i < Shape::kQueries / 8; ++i) {
      WINNOW_UNROLL
      for (int e = 0; e < 4; ++e) {
        const int row = t_.first + query(first + i * 8 + own_.lane % 4 * 2 + e % 2);
        if (!sees(row, key + e / 2 * 8, t_.reach)) x[i][e] = kNever;
      }
    }
  }

  template <class Join>
  WINNOW_DEVICE void reduce(const float (&x)[Shape::kStrips][Shape::kQueries / 8][4], const float* off, Join join) {
    WINNOW_UNROLL
    for (int i = 0; i < Shape::kQueries / 8; ++i) {
      WINNOW_UNROLL
      for (int c = 0; c < 2; ++c) {
        const float of_query = off[i * 8 + own_.lane % 4 * 2 + c];
        WINNOW_UNROLL
        for (int s = 0; s < Shape::kStrips; ++s) {
          WINNOW_UNROLL
          for (int r = 0; r < 2; ++r) of_key_[s][r] = join(of_key_[s][r], exp2(x[s][i][2 * r + c] - of_query));
        }
      }
    }
  }

  WINNOW_DEVICE void store() {
    WINNOW_UNROLL
    for (int s = 0; s < Shape::kStrips; ++s) {
      WINNOW_UNROLL
      for (int r = 0; r < 2; ++r) {
        float mine = of_key_[s][r];
        WINNOW_UNROLL
        for (int lanes = 1; lanes < 4; lanes *= 2) mine = join(mine, shuffle_xor(mine, lanes));
        const int key = block_ + (thread() / 32 * Shape::kStrips + s) * 16 + own_.lane / 4 + r * 8;
        if (own_.lane % 4 != 0 || key >= last_key_) continue;
        float& column = t_.columns[static_cast<std::size_t>(head_) * t_.stride + key - t_.begin];
        column = join(column, mine);
      }
    }
  }

  WINNOW_DEVICE float join(float a, float b) const { return t_.reduction == Reduction::sum ? a + b : (a > b ? a : b); }

  const ObserveTask& t_;
  int head_;
  int block_;     ///< first key
  int last_key_;  ///< end of the keys
  Tile<D> keys_;
  Lane own_;
  float of_key_[Shape::kStrips][2];
};

template <class T, int D>
WINNOW_KERNEL(ObserveShape<D>::kThreads)
observe_kernel(const ObserveTask task) {
  ObserveBlock<T, D>(task).run();
}

}  // namespace

const char* observe(const ObserveTask& task, void* stream) {
  return for_element_and_dim(task.element, task.dim, [&]<class T, int D>() {
    using Shape = ObserveShape<D>;
    const int end = task.end < task.first + task.count ? task.end : task.first + task.count;
    const int keys = end > task.begin && task.observed > 0 ? end - task.begin : 0;
    const Grid grid{(keys + Shape::kKeys - 1) / Shape::kKeys, task.heads, Shape::kThreads, Shape::kShared};
    return launch<observe_kernel<T, D>>(grid, stream, task);
  });
}

}  // namespace winnow::device
