// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "attention/attention.h"
#include "attention/device/kernel_gate.h"
#include "attention/device/observed_rows.h"
#include "attention/device/work_space.h"
#include "device/device.h"

namespace winnow::attention::device {

/// Attention of prompts by a device's kernels (docs/gpu.md). Queries, keys and values are copied from the host's
/// memory, outputs and statistics back to it. Chunks that the kernels cannot compute are left to the CPU, and all
/// chunks after a kernel has refused one.
class Prefill final : public PrefillAttention {
 public:
  /// REQUIRES: the device has kernels and outlives this object.
  Prefill(winnow::device::Device& device, std::unique_ptr<PrefillAttention> cpu)
      : device_(device), cpu_(std::move(cpu)), gate_(device, "attention of prompts"), work_(device) {}

  /// REQUIRES: no column statistics keep states of rows within the chunk.
  void begin(const Shape& shape, const cache::LayerScratch& scratch, const float* q, float* out, int first, int count,
             std::span<ColumnStatistics* const> columns, KeyRange recorded = {}, const float* row_scales = nullptr,
             const cache::PastRows* past = nullptr) override;
  void begin(const Shape& shape, const cache::LayerScratch& scratch, const float* q, float* out,
             const VisibleRange& visible) override;
  void record_logsums(float* sums) override;
  /// One thread waits for the device.
  void run(Worker worker) override;
  void reduce(Worker worker) override;
  std::size_t recording_bytes(const Shape& shape, const Chunk& chunk,
                              std::span<const PromptColumns> observed) const override {
    return cpu_->recording_bytes(shape, chunk, observed);
  }

 private:
  /// A chunk whose arguments are those of begin().
  struct Chunk {
    Shape shape;
    float* out;
    int first;
    int count;
    KeyRange recorded;

    std::size_t elements() const { return as_size(count) * as_size(shape.query_heads) * as_size(shape.head_dim); }
    std::size_t rows() const { return as_size(count) * as_size(shape.query_heads); }
    int keys() const { return std::max(0, std::min(recorded.end, first + count) - recorded.begin); }
  };
  /// Column statistics of the chunk's queries, and the arrays of their task.
  struct Part {
    ColumnStatistics* into;
    ObservedRows observed;
    std::size_t rows, weights, columns;  ///< offsets of [observed], [observed], [H_q][recorded keys]
  };
  /// Rows of earlier text, and their offsets: [rows of all KV heads][d] keys and values, [H_kv + 1] first rows.
  struct Past {
    std::vector<std::int32_t> first;
    std::size_t keys, values, firsts;
  };

  /// Whether the kernels can compute a chunk that ends before row `end`.
  bool supports(const Shape& shape, const cache::LayerScratch& scratch, int end,
                std::span<ColumnStatistics* const> columns, const cache::PastRows* past) const;
  void place(const cache::LayerScratch& scratch, std::span<ColumnStatistics* const> columns, const float* row_scales,
             const cache::PastRows* past);
  void place(const cache::PastRows& past);
  void upload(const float* q, const cache::PastRows* past) const;
  bool attend(const cache::LayerScratch& scratch, bool sees_past);
  bool observe(const Part& part, const winnow::device::PrefillTask& prompt);
  void add(const Part& part);

  winnow::device::Device& device_;
  std::unique_ptr<PrefillAttention> cpu_;
  KernelGate gate_;
  bool is_on_cpu_ = false;
  float* logsums_ = nullptr;
  Chunk chunk_{};
  std::vector<Part> parts_;
  Past past_{};
  WorkSpace work_;
  std::size_t q_ = 0, out_ = 0, lse_ = 0, packed_ = 0, sinks_ = 0;  ///< offsets
  std::vector<float> columns_;                                      ///< [recorded keys] of one head
};

}  // namespace winnow::attention::device
