// SPDX-License-Identifier: Apache-2.0
#include "device/kernels/merge.h"

#include <cstddef>

#include "device/kernels/parts.h"
#include "device/kernels/tile.h"

namespace winnow::device {
namespace {

inline constexpr int kSlices = 16;  ///< warps, each of which merges every sixteenth part
inline constexpr int kMergeThreads = kSlices * 32;
inline constexpr int kMostDim = 256;
inline constexpr int kProbabilityThreads = 256;

/// A block handles one query head of one row.
class MergeBlock {
 public:
  WINNOW_DEVICE explicit MergeBlock(const DecodeTask& task)
      : t_(task),
        parts_(task),
        row_(block_x()),
        head_(block_y()),
        begin_(task.first_item[row_ * task.kv_heads + head_ / parts_.group]),
        end_(task.first_item[row_ * task.kv_heads + head_ / parts_.group + 1]) {}

  WINNOW_DEVICE void run() const {
    const float largest = reduce(largest_of_slice(), [](float a, float b) { return a > b ? a : b; });
    const float sink = t_.sinks != nullptr ? exp2(t_.sinks[head_] * kLog2e - largest) : 0;
    const float sum = reduce(sum_of_slice(largest), [](float a, float b) { return a + b; }) + sink;
    fold_slice(largest);
    sync_block();
    const std::size_t place = static_cast<std::size_t>(row_) * t_.heads + head_;
    add_slices(t_.out + place * t_.dim, sum > 0 ? 1 / sum : 0);
    if (t_.lse != nullptr && thread() == 0) t_.lse[place] = largest + log2(sum);
  }

 private:
  WINNOW_DEVICE float* shared() const { return reinterpret_cast<float*>(shared_memory()); }
  WINNOW_DEVICE std::size_t part(int item) const { return parts_.place(item, head_ % parts_.group); }

  WINNOW_DEVICE float largest_of_slice() const {
    float largest = t_.sinks != nullptr ? t_.sinks[head_] * kLog2e : kNever;
    for (int i = begin_ + thread(); i < end_; i += kMergeThreads) {
      largest = parts_.largest(part(i)) > largest ? parts_.largest(part(i)) : largest;
    }
    return largest;
  }
  WINNOW_DEVICE float sum_of_slice(float largest) const {
    float sum = 0;
    for (int i = begin_ + thread(); i < end_; i += kMergeThreads) {
      sum += parts_.sum(part(i)) * exp2(parts_.largest(part(i)) - largest);
    }
    return sum;
  }

  /// Reduces over the block. All threads get the result; the order is fixed.
  template <class Fold>
  WINNOW_DEVICE float reduce(float mine, Fold fold) const {
    WINNOW_UNROLL
    for (int lanes = 1; lanes < 32; lanes *= 2) mine = fold(mine, shuffle_xor(mine, lanes));
    if (thread() % 32 == 0) shared()[thread() / 32] = mine;
    sync_block();
    float all = shared()[0];
    for (int w = 1; w < kSlices; ++w) all = fold(all, shared()[w]);
    sync_block();  // before the next reduction
    return all;
  }

  /// Warp s writes the sum of parts begin + s, begin + s + 16 and so on to shared memory, [slice][dim].
  WINNOW_DEVICE void fold_slice(float largest) const {
    const int slice = thread() / 32;
    for (int at = thread() % 32 * 4; at < t_.dim; at += 128) {
      float out[4] = {0, 0, 0, 0};
      WINNOW_UNROLL_BY(4)
      for (int i = begin_ + slice; i < end_; i += kSlices) {
        const float weight = exp2(parts_.largest(part(i)) - largest);
        const Floats of_part = load_floats(parts_.out(part(i)) + at);
        WINNOW_UNROLL
        for (int e = 0; e < 4; ++e) out[e] += of_part.x[e] * weight;
      }
      WINNOW_UNROLL
      for (int e = 0; e < 4; ++e) shared()[slice * t_.dim + at + e] = out[e];
    }
  }

  WINNOW_DEVICE void add_slices(float* to, float over) const {
    for (int at = thread(); at < t_.dim; at += kMergeThreads) {
      float out = 0;
      for (int s = 0; s < kSlices; ++s) out += shared()[s * t_.dim + at];
      to[at] = out * over;
    }
  }

  const DecodeTask& t_;
  Parts parts_;
  int row_;
  int head_;
  int begin_;  ///< items
  int end_;
};

WINNOW_KERNEL(kMergeThreads) merge_kernel(const DecodeTask task) { MergeBlock(task).run(); }

/// A block turns the logits of one item into probabilities.
WINNOW_KERNEL(kProbabilityThreads) probabilities_kernel(const DecodeTask task) {
  const DecodeItem& item = task.items[block_x()];
  if (item.probabilities == nullptr) return;
  const int group = task.heads / task.kv_heads;
  for (int g = 0; g < group; ++g) {
    const float lse = task.lse[static_cast<std::size_t>(item.row) * task.heads + item.kv_head * group + g];
    float* const p = item.probabilities + static_cast<std::size_t>(g) * item.stride;
    for (int entry = thread(); entry < item.count; entry += kProbabilityThreads) p[entry] = exp2(p[entry] - lse);
  }
}

}  // namespace

const char* merge(const DecodeTask& task, void* stream) {
  const char* const problem =
      launch<merge_kernel>(Grid{task.rows, task.heads, kMergeThreads, kSlices * kMostDim * 4}, stream, task);
  if (problem != nullptr || task.lse == nullptr) return problem;
  return launch<probabilities_kernel>(Grid{task.item_count, 1, kProbabilityThreads, 0}, stream, task);
}

}  // namespace winnow::device
