// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/memory.h"
#include "base/worker.h"
#include "model/weights.h"

struct ggml_tensor;

namespace winnow::network {

/// A matrix [inputs, outputs] in bf16, in the layout of bf16_rows.h.
struct PackedMatrix {
  const std::byte* source = nullptr;  ///< rows of weights in the file
  const ggml_tensor* weight = nullptr;
  std::uint16_t* data = nullptr;
};

/// Matrices of a model, dequantized, rounded to bf16 and packed: all of them, or one layer's at a time in the same
/// memory.
class PackedSet {
 public:
  /// Bytes of packed matrices. A set also allocates a few rows for each thread.
  static std::size_t bytes(std::span<const ggml_tensor* const> matrices);

  /// Makes a set with room for `bytes` bytes of matrices. Throws MemoryError.
  PackedSet(const model::Weights& weights, MemoryAccount& account, std::size_t bytes, int threads);

  /// Assigns places to the matrices, replacing the earlier ones. REQUIRES: every thread of a team then calls pack()
  /// before find() is used.
  void begin(std::span<const ggml_tensor* const> matrices);
  void pack(Worker worker) noexcept;

  /// Null: not packed. The result is valid until the next begin().
  const PackedMatrix* find(const ggml_tensor* weight) const;

 private:
  /// 64 outputs of a matrix, packed by one thread.
  struct WorkItem {
    const PackedMatrix* matrix;
    int first;
  };

  void pack(const WorkItem& item, std::byte* rows) const;

  const model::Weights& weights_;
  Buffer data_;
  Buffer rows_;  ///< work space of each thread
  std::unordered_map<const ggml_tensor*, PackedMatrix> matrices_;
  std::vector<WorkItem> items_;
  WorkQueue queue_;
};

}  // namespace winnow::network
