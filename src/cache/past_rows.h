// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/as_size.h"
#include "base/memory.h"
#include "base/rope.h"
#include "cache/element.h"
#include "cache/lane_run.h"

namespace winnow::cache {

/// Entries of one layer's lanes, decoded for a later prompt: including merged entries, and with keys rotated so that
/// the prompt's queries, which are rotated to their positions in the text, see them at their effective positions. Heads
/// may differ in length. The next layer reuses the memory.
class PastRows {
 public:
  /// `type` is f16, bf16 or f32.
  PastRows(MemoryAccount& account, ElementType type) : account_(account), type_(type) {}

  /// Discards all rows, and makes room for `entries` of each head, [H_kv]. Throws MemoryError.
  void begin_layer(int head_dim, std::span<const int> entries);
  /// Appends a run of a lane to its head's rows.
  void add(int head, const LaneRun& run, const Rope& rope);

  ElementType type() const { return type_; }
  int kv_heads() const { return static_cast<int>(count_.size()); }
  int count(int head) const { return count_[as_size(head)]; }
  Rows keys(int head) const { return rows(keys_, head); }
  Rows values(int head) const { return rows(values_, head); }

  /// Bytes of `rows` rows, the sum over heads.
  static std::size_t bytes(ElementType type, int head_dim, std::size_t rows) {
    return 2 * rows * row_bytes(type, head_dim);
  }

 private:
  Rows rows(const Buffer& buffer, int head) const;

  MemoryAccount& account_;
  ElementType type_;
  int dim_ = 0;
  std::vector<std::size_t> first_;  ///< [H_kv] first row of each head
  std::vector<int> count_;          ///< [H_kv]
  Buffer keys_;                     ///< [rows of all heads][d]
  Buffer values_;
};

}  // namespace winnow::cache
