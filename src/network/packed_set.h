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

/// Matrices of a model that are dequantized, rounded to bf16 and packed: those of one layer after the other in the same
/// memory, or all.
class PackedSet {
 public:
  /// Bytes that some matrices take. Nothing else is allocated but a few rows for each thread.
  static std::size_t bytes(std::span<const ggml_tensor* const> matrices);

  /// With room for so many bytes of matrices. Throws MemoryError.
  PackedSet(const model::Weights& weights, MemoryAccount& account, std::size_t bytes, int threads);

  /// Gives the matrices their places; what was there is gone. Then every thread of a team calls pack(), and then find()
  /// finds them.
  void begin(std::span<const ggml_tensor* const> matrices);
  void pack(Worker worker) noexcept;

  /// Null: it is not packed. What is found stays until the next begin().
  const PackedMatrix* find(const ggml_tensor* weight) const;

 private:
  /// 64 outputs of a matrix.
  struct Part {
    const PackedMatrix* matrix;
    int first;
  };

  void pack(const Part& part, std::byte* rows) const;

  const model::Weights& weights_;
  Buffer data_;
  Buffer rows_;  ///< that each thread is packing
  std::unordered_map<const ggml_tensor*, PackedMatrix> matrices_;
  std::vector<Part> parts_;
  WorkQueue queue_;
};

}  // namespace winnow::network
