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
/// the method knows. Not thread-safe, except that threads may set those of different heads; reserve() is for one thread
/// alone.
class Summaries {
 public:
  /// Blocks whose summaries are allocated together.
  static constexpr int kTogether = 64;

  Summaries(MemoryAccount& account, const LaneShape& shape);
  /// A copy with memory of its own.
  Summaries clone(MemoryAccount& account) const;

  /// Bytes that summaries of `blocks` blocks of each head take.
  static std::size_t bytes(const LaneShape& shape, int blocks);

  /// Makes sure that there are summaries of `blocks` blocks of each head; new ones are zeros. Throws MemoryError.
  void reserve(int blocks);
  /// Encodes the summary of a block, [LaneShape::summary_size].
  void set(int head, int block, std::span<const float> values);
  /// Those of blocks [block, end) that lie together, from the first on: at least one.
  Rows rows(int head, int block, int end) const;
  /// One summary as it is encoded, [summary_bytes()].
  std::span<std::byte> bytes(int head, int block);
  std::span<const std::byte> bytes(int head, int block) const;

 private:
  std::size_t offset(int head, int block) const;

  MemoryAccount* account_;
  LaneShape shape_;
  std::size_t row_bytes_;
  std::vector<Buffer> memory_;  ///< each of kTogether blocks of head 0, then head 1, …
};

}  // namespace winnow::cache
