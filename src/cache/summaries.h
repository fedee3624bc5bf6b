// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/memory.h"
#include "cache/element.h"
#include "cache/lane_shape.h"

namespace winnow::cache {

/// What a method makes of blocks of a layer's entries: one encoded row for each block of each head. What a block is,
/// the method knows. As in LaneStorage, a head's first blocks have exactly the memory that they need, and pages follow.
/// Not thread-safe, except that threads may set those of different heads; allocate() and reserve() are for one thread
/// alone.
class Summaries {
 public:
  /// Blocks of one head in a page.
  static constexpr int kPage = 16;

  /// There are none.
  Summaries(MemoryAccount& account, const LaneShape& shape);
  /// A copy with memory of its own.
  Summaries clone(MemoryAccount& account) const;

  /// Begins anew with zeros for so many blocks of each head, [H_kv]. Throws MemoryError.
  void allocate(std::span<const int> blocks);
  /// Makes sure that there are summaries of so many blocks of each head, [H_kv]; new ones are zeros. Throws
  /// MemoryError.
  void reserve(std::span<const int> blocks);
  /// Encodes the summary of a block, [LaneShape::summary_size].
  void set(int head, int block, std::span<const float> values);
  /// Those of blocks [block, end) that lie together, from the first on: at least one.
  Rows rows(int head, int block, int end) const;
  /// One summary as it is encoded, [summary_bytes()].
  std::span<std::byte> bytes(int head, int block);
  std::span<const std::byte> bytes(int head, int block) const;

 private:
  Buffer make(int blocks) const;
  /// Blocks of a head that lie in the first memory.
  int first_blocks(int head) const { return first_[head + 1] - first_[head]; }
  const std::byte* at(int head, int block) const;

  MemoryAccount* account_;
  LaneShape shape_;
  std::size_t row_bytes_;
  std::vector<int> first_;     ///< [H_kv + 1] where each head's blocks begin in `memory_`
  Buffer memory_;              ///< the first blocks of head 0, then head 1, …
  std::vector<Buffer> pages_;  ///< each kPage blocks of head 0, then head 1, …
};

}  // namespace winnow::cache
