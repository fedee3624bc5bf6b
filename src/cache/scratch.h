// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/memory.h"
#include "cache/element.h"

namespace winnow::cache {

/// Sizes of a layer's KV heads.
struct KvHeads {
  int count = 0;
  int dim = 0;  ///< d
};

/// Products of a head's rows with a vector, or of each row with itself. Products of elements are rounded to f32, and
/// added in double from the first one on.
struct RowProducts {
  enum class Of : std::uint8_t { keys, values };
  Of of;
  int head;
  std::span<const float> vector = {};  ///< [d]; empty: each row itself
};

class LayerScratch;

/// A copy of a scratch's first rows in another memory. It may have some last rows that the scratch lacks. The scratch
/// owns it, and tells it which rows change.
class ScratchCopy {
 public:
  virtual ~ScratchCopy() = default;

  /// Rows [0, rows()) are those of the scratch.
  int rows() const { return rows_.load(std::memory_order_acquire); }
  void set_rows(int rows) { rows_.store(rows, std::memory_order_relaxed); }
  /// Rows from `row` on change in the scratch. Thread-safe: who sees the new rows() sees what was copied before.
  void changes(int row) {
    for (int old = rows(); row < old && !rows_.compare_exchange_weak(old, row, std::memory_order_acq_rel);) continue;
  }
  /// The copy gets rows [first, end), which the scratch lacks.
  void add_rows(int first, int end);
  /// Rows from `count` on are discarded.
  void truncate(int count);

  /// Copies all rows that the scratch lacks to it. Thread-safe.
  void complete(const LayerScratch& scratch);
  /// Copies some of these rows, ascending for each head, to the scratch, which still lacks the others.
  void copy_some(const LayerScratch& scratch, std::span<const std::vector<std::int32_t>> rows);
  /// Computes products, [size()], if the scratch lacks rows. Returns false if it does not, or the copy cannot.
  bool multiply(const LayerScratch& scratch, const RowProducts& what, std::span<double> out);

 protected:
  /// Copies rows [first, rows()).
  virtual void read(const LayerScratch& scratch, int first) = 0;
  /// Copies some rows. Returns false if it cannot.
  virtual bool read(const LayerScratch& scratch, std::span<const std::vector<std::int32_t>> rows) = 0;
  /// Computes products. Returns false if it cannot.
  virtual bool products(const LayerScratch& scratch, const RowProducts& what, std::span<double> out) = 0;

 private:
  static constexpr int kNone = std::numeric_limits<int>::max();
  bool is_ahead() const { return first_ahead_.load(std::memory_order_acquire) != kNone; }

  std::atomic<int> rows_ = 0;
  std::atomic<int> first_ahead_ = kNone;  ///< rows from here on are only in the copy
  std::mutex completing_;
};

/// Full keys and values of one layer while a prompt passes through it; the next layer reuses the memory. Keys are
/// rotated to their own positions. Layout [H_kv][capacity][d], so a head's rows are contiguous.
class LayerScratch {
 public:
  /// Room for `capacity` tokens. `type` is f16, bf16 or f32. Throws MemoryError.
  LayerScratch(MemoryAccount& account, ElementType type, int kv_heads, int head_dim, int capacity);
  /// The same for the largest of several layers; begins with the first one. REQUIRES: at least one layer.
  LayerScratch(MemoryAccount& account, ElementType type, std::span<const KvHeads> layers, int capacity);
  /// Bytes of such a scratch.
  static std::size_t bytes(ElementType type, std::span<const KvHeads> layers, int capacity);

  /// Discards all tokens and begins a layer with these heads. REQUIRES: one of the layers given to the constructor.
  void begin_layer(const KvHeads& heads);
  /// Discards all tokens from index `count` on.
  void truncate(int count);
  /// Adds rows [size, size + positions.size()) at the given positions, to be filled by store(). Returns the first row.
  int extend(std::span<const std::int32_t> positions);
  /// Stores keys and values [H_kv][d] f32 of one token in row `row` of every head. Threads may store different rows.
  void store(int row, const float* keys, const float* values);

  /// Bytes of keys and values of `count` rows in all heads.
  std::size_t bytes_of_rows(int count) const;
  /// Copies rows [first, first + count) out of the scratch, encoded as `type`, or back into it: [2][H_kv][count][d].
  void copy_rows(int first, int count, ElementType type, std::byte* to) const;
  void put_rows(int first, int count, ElementType type, const std::byte* from);

  Rows keys(int head) const;
  Rows values(int head) const;
  /// Gets rows that only the copy has: those given, ascending for each head; none given: all. Then fetched_keys() and
  /// fetched_values() read them without waiting for others.
  void fetch(std::span<const std::vector<std::int32_t>> rows) const;
  Rows fetched_keys(int head) const { return rows(keys_, head); }
  Rows fetched_values(int head) const { return rows(values_, head); }
  /// Computes products, [size()], where the rows are: with the same bits in the scratch and in its copy.
  std::vector<double> products(const RowProducts& what) const;

  /// Addresses of a head's encoded rows from `row` on, for the copy.
  struct Addresses {
    std::byte* keys;
    std::byte* values;
  };
  Addresses addresses(int head, int row) const;
  /// The copy for a device, made by whoever computes there; null: none.
  std::unique_ptr<ScratchCopy>& device_copy() const { return copy_; }
  /// Bytes of the keys of all rows of the largest layer, and of its values.
  std::size_t key_bytes() const { return keys_.size(); }
  std::span<const std::int32_t> positions() const { return positions_; }
  int size() const { return static_cast<int>(positions_.size()); }
  int capacity() const { return capacity_; }
  int kv_heads() const { return heads_.count; }
  int head_dim() const { return heads_.dim; }
  ElementType type() const { return type_; }

 private:
  /// Gets all rows that only the copy has.
  void complete() const {
    if (copy_ != nullptr) copy_->complete(*this);
  }
  /// Offset of a row in keys_ and values_.
  std::size_t place(int head, int row) const;
  Rows rows(const Buffer& buffer, int head) const;

  ElementType type_;
  KvHeads heads_;
  int capacity_;
  mutable Buffer keys_;  // also filled from the copy when they are read
  mutable Buffer values_;
  std::vector<std::int32_t> positions_;
  mutable std::unique_ptr<ScratchCopy> copy_;
};

}  // namespace winnow::cache
