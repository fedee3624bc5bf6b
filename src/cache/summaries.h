// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/memory.h"
#include "cache/element.h"
#include "cache/lane_shape.h"

namespace winnow::cache {

/// A method's summaries of blocks of a layer's entries: an encoded row for each block of each head. The method defines
/// the blocks. As in LaneStorage, a head's initial summaries have exactly the memory they need, and smaller chunks
/// follow. Not thread-safe, except that threads may set summaries of different heads; allocate() and reserve() are for
/// one thread only.
class Summaries {
 public:
  /// Summaries of one head in a later chunk.
  static constexpr int kTailRows = 16;

  /// Has no summaries.
  Summaries(MemoryAccount& account, const LaneShape& shape);
  /// A deep copy.
  Summaries clone(MemoryAccount& account) const;

  /// Replaces all summaries by zeros for `blocks` blocks of each head, [H_kv]. Throws MemoryError.
  void allocate(std::span<const int> blocks);
  /// Grows to at least `blocks` blocks of each head, [H_kv]; new summaries are zeros. Throws MemoryError.
  void reserve(std::span<const int> blocks);
  /// Encodes a block's summary, [LaneShape::summary_size].
  void set(int head, int block, std::span<const float> values);
  /// The summaries of blocks [block, end) that are contiguous with the first one, at least that one.
  Rows rows(int head, int block, int end) const;
  /// An encoded summary, [summary_bytes()].
  std::span<std::byte> bytes(int head, int block);
  std::span<const std::byte> bytes(int head, int block) const;

 private:
  Buffer make(int blocks) const;
  /// Blocks of a head in the initial memory.
  int first_blocks(int head) const { return first_[head + 1] - first_[head]; }
  const std::byte* at(int head, int block) const;

  MemoryAccount* account_;
  LaneShape shape_;
  std::size_t row_bytes_;
  std::vector<int> first_;    ///< [H_kv + 1] first block of each head in `memory_`
  Buffer memory_;             ///< the initial blocks of head 0, then head 1, …
  std::vector<Buffer> tail_;  ///< each has kTailRows blocks of head 0, then head 1, …
};

}  // namespace winnow::cache
