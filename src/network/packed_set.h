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

/// A matrix [inputs, outputs] in bf16, laid out as bf16_rows.h says.
struct PackedMatrix {
  const std::byte* source = nullptr;  ///< rows of weights as the file has them
  const ggml_tensor* weight = nullptr;
  std::uint16_t* data = nullptr;
};

/// Matrices of a model that are dequantized, rounded to bf16 and packed: all of them, or one layer's at a time in the
/// same memory.
class PackedSet {
 public:
  /// Bytes that matrices take when packed. Besides them a set allocates only a few rows for each thread.
  static std::size_t bytes(std::span<const ggml_tensor* const> matrices);

  /// With room for `bytes` bytes of matrices. Throws MemoryError.
  PackedSet(const model::Weights& weights, MemoryAccount& account, std::size_t bytes, int threads);

  /// Gives the matrices their places, over those that were there. Then every thread of a team calls pack(). Only then
  /// does find() find them.
  void begin(std::span<const ggml_tensor* const> matrices);
  void pack(Worker worker) noexcept;

  /// Null: it is not packed. What is found stays until the next begin().
  const PackedMatrix* find(const ggml_tensor* weight) const;

 private:
  /// What a thread packs at a time: 64 outputs of a matrix.
  struct WorkItem {
    const PackedMatrix* matrix;
    int first;
  };

  void pack(const WorkItem& item, std::byte* rows) const;

  const model::Weights& weights_;
  Buffer data_;
  Buffer rows_;  ///< that each thread is packing
  std::unordered_map<const ggml_tensor*, PackedMatrix> matrices_;
  std::vector<WorkItem> items_;
  WorkQueue queue_;
};

}  // namespace winnow::network
