// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>

#include "device/calls.h"
#include "device/dispatch.h"
#include "device/tile.h"

namespace winnow::device {
namespace {

/// A block's share: 16 x kStrips keys for each of its warps, which walk over tiles of kQueries observed queries.
template <int D>
struct ObserveShape {
  static constexpr int kWarps = 8;
  static constexpr int kStrips = D <= 128 ? 2 : 1;
  static constexpr int kQueries = D <= 128 ? 64 : 32;
  static constexpr int kThreads = kWarps * 32;
  static constexpr int kKeys = 16 * kWarps * kStrips;
  static constexpr int kRows = Tile<D>::bytes(kKeys + 2 * kQueries);
  static constexpr int kShared = kRows + 2 * kQueries * 8;
};

/// A tile's query: its row in the prompt, and what is taken off its logits, so that their powers of 2 are its
/// probabilities times its weight.
struct Observed {
  std::int32_t row;
  float less;
};

/// One block of keys of one query head. Products have keys as rows, so that each thread reduces over its own columns.
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
    if (tile >= tiles) return;  // the same for all threads
    copy_keys();
    copy_tile(tile);
    for (int s = 0; s < Shape::kStrips; ++s) of_key_[s][0] = of_key_[s][1] = 0;
    for (; tile < tiles; ++tile) {
      const bool more = tile + 1 < tiles && is_seen(tile + 1);
      if (more) {
        copy_tile(tile + 1);
        wait_copies<1>();
      } else {
        wait_copies<0>();
      }
      sync_block();
      observe_tile(tile);
      sync_block();  // before the tile is overwritten
      if (!more) break;
    }
    store();
  }

 private:
  WINNOW_DEVICE Tile<D> queries(int tile) const { return keys_.after(Shape::kKeys + tile % 2 * Shape::kQueries); }
  WINNOW_DEVICE Observed* observed(int tile) const {
    return reinterpret_cast<Observed*>(shared_memory() + Shape::kRows) + tile % 2 * Shape::kQueries;
  }

  /// Query of the chunk.
  WINNOW_DEVICE int query(int i) const { return t_.rows != nullptr ? t_.rows[i] : i; }
  /// The first tile with a query at or after the block's first key.
  WINNOW_DEVICE int first_tile(int tiles) const {
    int low = 0;
    int high = tiles;
    while (low < high) {
      const int middle = (low + high) / 2;
      const int last = middle * Shape::kQueries + Shape::kQueries - 1;
      if (t_.first + query(last < t_.observed ? last : t_.observed - 1) >= block_) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }
  /// Whether its first query reaches back to a key of the block.
  WINNOW_DEVICE bool is_seen(int tile) const {
    return t_.reach == 0 || t_.first + query(tile * Shape::kQueries) - (block_ + Shape::kKeys - 1) < t_.reach;
  }

  WINNOW_DEVICE void copy_keys() const {
    const std::size_t lane = static_cast<std::size_t>(head_ / (t_.heads / t_.kv_heads)) * t_.capacity;
    const auto* const from = static_cast<const std::uint16_t*>(t_.keys) + (lane + block_) * t_.dim;
    copy_rows<Shape::kKeys, Shape::kThreads>(keys_, t_.dim, [=, this](int row) {
      return block_ + row < last_key_ ? from + static_cast<std::size_t>(row) * t_.dim : nullptr;
    });
  }

  WINNOW_DEVICE void copy_tile(int tile) const {
    const int first = tile * Shape::kQueries;
    const auto* const from =
        static_cast<const std::uint16_t*>(t_.packed) + static_cast<std::size_t>(head_) * t_.count * t_.dim;
    copy_rows<Shape::kQueries, Shape::kThreads>(queries(tile), t_.dim, [=, this](int row) {
      return first + row < t_.observed ? from + static_cast<std::size_t>(query(first + row)) * t_.dim : nullptr;
    });
    commit_copies();
    if (thread() < Shape::kQueries) observed(tile)[thread()] = describe(first + thread());
  }

  WINNOW_DEVICE Observed describe(int i) const {
    if (i >= t_.observed) return {-1, 0};  // sees no key
    const int of_chunk = query(i);
    const float lse = t_.lse[static_cast<std::size_t>(of_chunk) * t_.heads + head_];
    return {t_.first + of_chunk, t_.weights != nullptr ? lse - log2(t_.weights[i]) : lse};
  }

  WINNOW_DEVICE void observe_tile(int tile) {
    float x[Shape::kStrips][Shape::kQueries / 8][4];
    multiply(queries(tile), x);
    const Observed* const of_tile = observed(tile);
    WINNOW_UNROLL
    for (int s = 0; s < Shape::kStrips; ++s) {
      const int key = block_ + (thread() / 32 * Shape::kStrips + s) * 16 + own_.lane / 4;
      WINNOW_UNROLL
      for (int i = 0; i < Shape::kQueries / 8; ++i) {
        WINNOW_UNROLL
        for (int e = 0; e < 4; ++e) {
          const Observed& by = of_tile[i * 8 + own_.lane % 4 * 2 + e % 2];
          const float logit = t_.cap > 0 ? capped(x[s][i][e], t_.cap) : x[s][i][e];
          const float p = sees(by.row, key + e / 2 * 8, t_.reach) ? exp2(logit - by.less) : 0;
          float& column = of_key_[s][e / 2];
          column = t_.reduction == Reduction::sum ? column + p : (p > column ? p : column);
        }
      }
    }
  }

  WINNOW_DEVICE void multiply(Tile<D> tile, float (&x)[Shape::kStrips][Shape::kQueries / 8][4]) const {
    WINNOW_UNROLL
    for (int s = 0; s < Shape::kStrips; ++s) {
      WINNOW_UNROLL
      for (int i = 0; i < Shape::kQueries / 8; ++i) {
        WINNOW_UNROLL
        for (int e = 0; e < 4; ++e) x[s][i][e] = 0;
      }
    }
    WINNOW_UNROLL
    for (int k = 0; k < D / 16; ++k) {
      std::uint32_t a[Shape::kStrips][4];
      WINNOW_UNROLL
      for (int s = 0; s < Shape::kStrips; ++s) {
        const int strip = (thread() / 32 * Shape::kStrips + s) * 16;
        load_matrices(a[s], keys_.at(strip + own_.left_row(), k * 2 + own_.left_column()));
      }
      WINNOW_UNROLL
      for (int n = 0; n < Shape::kQueries / 16; ++n) {
        std::uint32_t b[4];
        load_matrices(b, tile.at(n * 16 + own_.right_row(), k * 2 + own_.right_column()));
        WINNOW_UNROLL
        for (int s = 0; s < Shape::kStrips; ++s) multiply_pair<T>(x[s][2 * n], x[s][2 * n + 1], a[s], b);
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
  int last_key_;  ///< key after the last
  Tile<D> keys_;
  Lane own_;
  float of_key_[Shape::kStrips][2];
};

template <class T, int D>
WINNOW_KERNEL(ObserveShape<D>::kThreads) observe_kernel(const ObserveTask task) {
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
