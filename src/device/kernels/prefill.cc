// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>

#include "device/kernels/calls.h"
#include "device/kernels/dispatch.h"
#include "device/kernels/tile.h"

namespace winnow::device {
namespace {

/// Row number before all rows of the past.
inline constexpr int kOldest = -(1 << 30);

/// Share of a block: 16 x kStrips queries for each warp, against tiles of kKeys keys.
template <int D>
struct PrefillShape {
  static constexpr int kWarps = 4;
  static constexpr int kStrips = D <= 128 ? 2 : 1;
  static constexpr int kKeys = D <= 128 ? 64 : 32;
  static constexpr int kThreads = kWarps * 32;
  static constexpr int kQueries = 16 * kWarps * kStrips;
  static constexpr int kShared = Tile<D>::bytes(kQueries + 4 * kKeys);
};

/// Softmax state over the keys so far, for this thread's two rows of a strip. The output is not divided yet.
template <int D>
struct Softmax {
  float out[D / 8][4];
  float largest[2];
  float sum[2];  ///< over this thread's columns

  WINNOW_DEVICE void begin(const float* sink, bool counts_sink) {
    WINNOW_UNROLL
    for (int i = 0; i < D / 8; ++i) {
      WINNOW_UNROLL
      for (int e = 0; e < 4; ++e) out[i][e] = 0;
    }
    WINNOW_UNROLL
    for (int r = 0; r < 2; ++r) {
      largest[r] = sink != nullptr ? *sink * kLog2e : kNever;
      sum[r] = sink != nullptr && counts_sink ? 1.0F : 0.0F;
    }
  }

  /// Replaces the logits of a tile by their exponentials. Before a row's first visible key the values are meaningless;
  /// they are multiplied by 0 when that key, at the latest its own, arrives.
  template <int Keys>
  WINNOW_DEVICE void take(float (&x)[Keys / 8][4]) {
    WINNOW_UNROLL
    for (int r = 0; r < 2; ++r) {
      float top = largest[r];
      WINNOW_UNROLL
      for (int i = 0; i < Keys / 8; ++i) {
        top = x[i][2 * r] > top ? x[i][2 * r] : top;
        top = x[i][2 * r + 1] > top ? x[i][2 * r + 1] : top;
      }
      WINNOW_UNROLL
      for (int lanes = 1; lanes < 4; lanes *= 2) {
        const float other = shuffle_xor(top, lanes);
        top = other > top ? other : top;
      }
      const float shrink = exp2(largest[r] - top);
      largest[r] = top;
      sum[r] *= shrink;
      WINNOW_UNROLL
      for (int i = 0; i < D / 8; ++i) {
        out[i][2 * r] *= shrink;
        out[i][2 * r + 1] *= shrink;
      }
      WINNOW_UNROLL
      for (int i = 0; i < Keys / 8; ++i) {
        WINNOW_UNROLL
        for (int e = 2 * r; e < 2 * r + 2; ++e) {
          x[i][e] = exp2(x[i][e] - top);
          sum[r] += x[i][e];
        }
      }
    }
  }
};

/// A block of queries of one head. Past: rows before those of the scratch are supported, which takes registers.
template <class T, int D, bool Past>
class PrefillBlock {
 public:
  using Shape = PrefillShape<D>;

  WINNOW_DEVICE explicit PrefillBlock(const PrefillTask& task)
      : t_(task),
        head_(block_y()),
        block_((blocks_x() - 1 - block_x()) * Shape::kQueries),  // the longest first
        queries_{reinterpret_cast<std::uint16_t*>(shared_memory())},
        own_{thread() % 32} {
    const int last = block_ + Shape::kQueries < t_.count ? block_ + Shape::kQueries : t_.count;
    end_ = t_.first + last;
    const int oldest = t_.window > 0 ? t_.first + block_ - t_.window + 1 : kOldest;
    start_ = oldest > 0 ? oldest : 0;
    see_past(oldest);
  }

  WINNOW_DEVICE void run() {
    copy_tile(0);
    pack_queries();
    const int group = own_.lane / 4;
    WINNOW_UNROLL
    for (int s = 0; s < Shape::kStrips; ++s) {
      softmax_[s].begin(t_.sinks != nullptr ? t_.sinks + head_ : nullptr, own_.lane % 4 == 0);
      row_[s] = thread() / 32 * 16 * Shape::kStrips + s * 16 + group;
    }
    const int tiles = past_tiles() + tiles_of(end_ - start_);
    for (int tile = 0; tile < tiles; ++tile) {
      wait_copies<0>();
      sync_block();  // the tile has arrived, and the previous one is no longer read
      if (tile + 1 < tiles) copy_tile(tile + 1);
      attend(tile);
    }
    WINNOW_UNROLL
    for (int s = 0; s < Shape::kStrips; ++s) store(softmax_[s], row_[s]);
  }

 private:
  WINNOW_DEVICE Tile<D> keys(int tile) const { return queries_.after(Shape::kQueries + tile % 2 * Shape::kKeys); }
  WINNOW_DEVICE Tile<D> values(int tile) const {
    return queries_.after(Shape::kQueries + (2 + tile % 2) * Shape::kKeys);
  }

  WINNOW_DEVICE static int tiles_of(int keys) { return (keys + Shape::kKeys - 1) / Shape::kKeys; }

  /// Adds the tiles of the past, which come first. Its rows have negative numbers.
  WINNOW_DEVICE void see_past(int oldest) {
    if constexpr (!Past) return;
    past_tiles_ = 0;
    const std::int32_t* const of_head = t_.past_first + head_ / (t_.heads / t_.kv_heads);
    past_end_ = of_head[1];
    const int first = of_head[0] - past_end_;
    past_start_ = oldest > first ? oldest : first;
    if (past_start_ < 0) past_tiles_ = tiles_of(-past_start_);
  }
  WINNOW_DEVICE int past_tiles() const { return Past ? past_tiles_ : 0; }
  WINNOW_DEVICE bool is_past(int tile) const { return Past && tile < past_tiles_; }
  WINNOW_DEVICE int first_key(int tile) const {
    return is_past(tile) ? past_start_ + tile * Shape::kKeys : start_ + (tile - past_tiles()) * Shape::kKeys;
  }

  WINNOW_DEVICE void copy_tile(int tile) {
    const int first = first_key(tile);
    const std::size_t lane = static_cast<std::size_t>(head_ / (t_.heads / t_.kv_heads)) * t_.capacity;
    const std::size_t row = is_past(tile) ? static_cast<std::size_t>(past_end_ + first) : lane + first;
    const int count = (is_past(tile) ? 0 : end_) - first;
    const auto rows_of = [&](const void* all) {
      const auto* const from = static_cast<const std::uint16_t*>(all) + row * t_.dim;
      return [=, dim = t_.dim](int r) { return from + r * dim; };
    };
    copy_rows<Shape::kKeys, Shape::kThreads>(keys(tile), t_.dim, count,
                                             rows_of(is_past(tile) ? t_.past_keys : t_.keys));
    copy_rows<Shape::kKeys, Shape::kThreads>(values(tile), t_.dim, count,
                                             rows_of(is_past(tile) ? t_.past_values : t_.values));
    commit_copies();
  }

  WINNOW_DEVICE void pack_queries() {
    const float by = packed_scale(t_.scale, t_.cap);
    for (int i = thread(); i < Shape::kQueries * Tile<D>::kColumns; i += Shape::kThreads) {
      const int row = i / Tile<D>::kColumns;
      const int column = i % Tile<D>::kColumns;
      const bool there = block_ + row < t_.count && column * 8 < t_.dim;
      Words packed = {};
      if (there) {
        const float* const from =
            t_.q + (static_cast<std::size_t>(block_ + row) * t_.heads + head_) * t_.dim + column * 8;
        WINNOW_UNROLL
        for (int k = 0; k < 4; ++k) packed.w[k] = T::pack(from[2 * k] * by, from[2 * k + 1] * by);
      }
      *reinterpret_cast<Words*>(queries_.at(row, column)) = packed;
      if (there && t_.packed != nullptr) {
        auto* const to = static_cast<std::uint16_t*>(t_.packed) +
                         (static_cast<std::size_t>(head_) * t_.count + block_ + row) * t_.dim + column * 8;
        *reinterpret_cast<Words*>(to) = packed;
      }
    }
  }

  WINNOW_DEVICE void attend(int tile) {
    float x[Shape::kStrips][Shape::kKeys / 8][4];
    multiply_rows<T>(queries_, thread() / 32 * Shape::kStrips * 16, keys(tile), own_, x);
    WINNOW_UNROLL
    for (int s = 0; s < Shape::kStrips; ++s) {
      limit(x[s], tile, t_.first + block_ + row_[s]);
      softmax_[s].template take<Shape::kKeys>(x[s]);
    }
    multiply_by_values(values(tile), x);
  }

  /// Applies the soft cap, and sets kNever for hidden keys. `row`: the first of this thread's two rows.
  WINNOW_DEVICE void limit(float (&x)[Shape::kKeys / 8][4], int tile, int row) const {
    if (t_.cap > 0) {
      WINNOW_UNROLL
      for (int i = 0; i < Shape::kKeys / 8; ++i) {
        WINNOW_UNROLL
        for (int e = 0; e < 4; ++e) x[i][e] = capped(x[i][e], t_.cap);
      }
    }
    const int first = first_key(tile);
    const int top = row - own_.lane / 4;  // of the strip
    if (first + Shape::kKeys <= (is_past(tile) ? 0 : top + 1) && (t_.window == 0 || first > top + 15 - t_.window))
      return;
    WINNOW_UNROLL
    for (int i = 0; i < Shape::kKeys / 8; ++i) {
      WINNOW_UNROLL
      for (int e = 0; e < 4; ++e) {
        const int key = first + i * 8 + own_.lane % 4 * 2 + e % 2;
        if ((is_past(tile) && key >= 0) || !sees(row + e / 2 * 8, key, t_.window)) x[i][e] = kNever;
      }
    }
  }

  WINNOW_DEVICE void multiply_by_values(Tile<D> tile, const float (&x)[Shape::kStrips][Shape::kKeys / 8][4]) {
    const SharedAddress right = tile.start(own_.left_row(), own_.left_column());
    WINNOW_UNROLL
    for (int n = 0; n < Shape::kKeys / 16; ++n) {
      std::uint32_t a[Shape::kStrips][4];
      WINNOW_UNROLL
      for (int s = 0; s < Shape::kStrips; ++s) {
        WINNOW_UNROLL
        for (int r = 0; r < 4; ++r)
          a[s][r] = T::pack(x[s][2 * n + r / 2][r % 2 * 2], x[s][2 * n + r / 2][r % 2 * 2 + 1]);
      }
      WINNOW_UNROLL
      for (int i = 0; i < D / 16; ++i) {
        std::uint32_t b[4];
        load_transposed(b, Tile<D>::walk(right, i, n * 16));
        WINNOW_UNROLL
        for (int s = 0; s < Shape::kStrips; ++s) {
          multiply_pair<T>(softmax_[s].out[2 * i], softmax_[s].out[2 * i + 1], a[s], b);
        }
      }
    }
  }

  WINNOW_DEVICE void store(const Softmax<D>& softmax, int first_row) const {
    WINNOW_UNROLL
    for (int r = 0; r < 2; ++r) {
      float sum = softmax.sum[r];
      WINNOW_UNROLL
      for (int lanes = 1; lanes < 4; lanes *= 2) sum += shuffle_xor(sum, lanes);
      const int row = block_ + first_row + r * 8;
      if (row >= t_.count) continue;
      const std::size_t place = static_cast<std::size_t>(row) * t_.heads + head_;
      const float over = 1 / sum;
      WINNOW_UNROLL
      for (int i = 0; i < D / 8; ++i) {
        if (i * 8 >= t_.dim) break;
        float* const to = t_.out + place * t_.dim + i * 8 + own_.lane % 4 * 2;
        to[0] = softmax.out[i][r * 2] * over;
        to[1] = softmax.out[i][r * 2 + 1] * over;
      }
      if (t_.lse != nullptr && own_.lane % 4 == 0) t_.lse[place] = softmax.largest[r] + log2(sum);
    }
  }

  const PrefillTask& t_;
  int head_;
  int block_;  ///< first query
  int start_;  ///< first key
  int past_tiles_;
  int past_start_;  ///< first key of the past
  int past_end_;    ///< end of the past's rows
  int end_;         ///< end of the keys
  Tile<D> queries_;
  Lane own_;
  int row_[Shape::kStrips];  ///< this thread's rows in the block
  Softmax<D> softmax_[Shape::kStrips];
};

template <class T, int D, bool Past>
WINNOW_KERNEL(PrefillShape<D>::kThreads)
prefill_kernel(const PrefillTask task) {
  PrefillBlock<T, D, Past>(task).run();
}

}  // namespace

const char* prefill(const PrefillTask& task, void* stream) {
  return for_element_and_dim(task.element, task.dim, [&]<class T, int D>() {
    using Shape = PrefillShape<D>;
    const Grid grid{(task.count + Shape::kQueries - 1) / Shape::kQueries, task.heads, Shape::kThreads, Shape::kShared};
    return task.past_first != nullptr ? launch<prefill_kernel<T, D, true>>(grid, stream, task)
                                      : launch<prefill_kernel<T, D, false>>(grid, stream, task);
  });
}

}  // namespace winnow::device
