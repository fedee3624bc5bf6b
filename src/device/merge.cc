// SPDX-License-Identifier: Apache-2.0
#include "device/merge.h"

#include <cstddef>

#include "device/tile.h"

namespace winnow::device {
namespace {

inline constexpr int kMergeThreads = 256;
inline constexpr int kSlices = 8;  ///< warps, each of which folds one part in eight

/// A block is one query head of one row.
class MergeBlock {
 public:
  WINNOW_DEVICE explicit MergeBlock(const DecodeTask& task)
      : t_(task),
        row_(block_x()),
        head_(block_y()),
        group_(task.heads / task.kv_heads),
        begin_(task.first_item[row_ * task.kv_heads + head_ / group_]),
        end_(task.first_item[row_ * task.kv_heads + head_ / group_ + 1]) {}

  WINNOW_DEVICE void run() {
    const float largest = reduce(largest_of_slice(), [](float a, float b) { return a > b ? a : b; });
    const float sink = t_.sinks != nullptr ? exp2(t_.sinks[head_] * kLog2e - largest) : 0;
    const float sum = reduce(sum_of_slice(largest), [](float a, float b) { return a + b; }) + sink;
    fold(largest, sum > 0 && end_ > begin_ ? 1 / sum : 0);
    if (end_ > begin_) write_probabilities(largest + log2(sum));
  }

 private:
  WINNOW_DEVICE float* shared() const { return reinterpret_cast<float*>(shared_memory()); }
  /// Output, largest logit and sum of a part.
  WINNOW_DEVICE const float* part(int item) const {
    return t_.partial + (static_cast<std::size_t>(item) * group_ + head_ % group_) * (t_.dim + 2);
  }

  WINNOW_DEVICE float largest_of_slice() const {
    float largest = t_.sinks != nullptr ? t_.sinks[head_] * kLog2e : kNever;
    for (int i = begin_ + thread(); i < end_; i += kMergeThreads) {
      largest = part(i)[t_.dim] > largest ? part(i)[t_.dim] : largest;
    }
    return largest;
  }
  WINNOW_DEVICE float sum_of_slice(float largest) const {
    float sum = 0;
    for (int i = begin_ + thread(); i < end_; i += kMergeThreads) {
      sum += part(i)[t_.dim + 1] * exp2(part(i)[t_.dim] - largest);
    }
    return sum;
  }

  /// The same for all threads, in an order that is always the same.
  template <class Fold>
  WINNOW_DEVICE float reduce(float mine, Fold fold) const {
    WINNOW_UNROLL
    for (int lanes = 1; lanes < 32; lanes *= 2) mine = fold(mine, shuffle_xor(mine, lanes));
    if (thread() % 32 == 0) shared()[thread() / 32] = mine;
    sync_block();
    float all = shared()[0];
    for (int w = 1; w < kSlices; ++w) all = fold(all, shared()[w]);
    sync_block();  // before the next one
    return all;
  }

  /// The output: warp s folds parts begin + s, begin + s + 8 and so on, and then the slices are added up.
  WINNOW_DEVICE void fold(float largest, float over) const {
    const int slice = thread() / 32;
    for (int at = thread() % 32; at < t_.dim; at += 32) {
      float out = 0;
      for (int i = begin_ + slice; i < end_; i += kSlices) out += part(i)[at] * exp2(part(i)[t_.dim] - largest);
      shared()[slice * t_.dim + at] = out;
    }
    sync_block();
    float* const to = t_.out + (static_cast<std::size_t>(row_) * t_.heads + head_) * t_.dim;
    for (int at = thread(); at < t_.dim; at += kMergeThreads) {
      float out = 0;
      for (int s = 0; s < kSlices; ++s) out += shared()[s * t_.dim + at];
      to[at] = out * over;
    }
  }

  WINNOW_DEVICE void write_probabilities(float lse) const {
    for (int i = begin_; i < end_; ++i) {
      const DecodeItem& item = t_.items[i];
      if (item.probabilities == nullptr) continue;
      float* const of_head = item.probabilities + static_cast<std::size_t>(head_ % group_) * item.stride;
      for (int key = thread(); key < item.count; key += kMergeThreads) of_head[key] = exp2(of_head[key] - lse);
    }
  }

  const DecodeTask& t_;
  int row_;
  int head_;
  int group_;
  int begin_;  ///< items
  int end_;
};

WINNOW_KERNEL(kMergeThreads) merge_kernel(const DecodeTask task) { MergeBlock(task).run(); }

}  // namespace

const char* merge(const DecodeTask& task, void* stream) {
  constexpr int kMostShared = kSlices * 256 * 4;
  return launch<merge_kernel>(Grid{task.rows, task.heads, kMergeThreads, kMostShared}, stream, task);
}

}  // namespace winnow::device
