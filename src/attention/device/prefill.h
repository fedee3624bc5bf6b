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
#include "attention/device/scratch_rows.h"
#include "attention/device/work_space.h"
#include "device/device.h"

namespace winnow::attention::device {

/// Attention of prompts by a device's kernels (docs/gpu.md), over a copy of the scratch. Queries and new rows may be in
/// the device's memory; otherwise they are copied from the host's, and outputs back to it. Chunks that the kernels
/// cannot compute are left to the CPU, and all chunks after a kernel has refused one.
class Prefill final : public PrefillAttention {
 public:
  /// REQUIRES: the device has kernels and outlives this object.
  Prefill(winnow::device::Device& device, std::unique_ptr<PrefillAttention> cpu)
      : device_(device), cpu_(std::move(cpu)), gate_(device, "attention of prompts"), work_(device) {}

  /// REQUIRES: no column statistics keep states of rows within the chunk.
  void begin(const PromptQueries& queries, const cache::LayerScratch& scratch) override;
  void begin(const Shape& shape, const cache::LayerScratch& scratch, const float* q, float* out,
             const VisibleRange& visible) override;
  void record_logsums(float* sums) override;
  /// One thread waits for the device.
  void run(Worker worker) override;
  void reduce(Worker worker) override;
  /// Waits for the device.
  winnow::device::OnDevice attend_on_device(const PromptQueries& queries, const NewRows& rows,
                                            cache::LayerScratch& scratch) override;
  std::size_t recording_bytes(const Shape& shape, const Chunk& chunk,
                              std::span<const PromptColumns> observed) const override {
    return cpu_->recording_bytes(shape, chunk, observed);
  }

 private:
  /// Numbers of vectors and of elements of the chunk's queries.
  std::size_t vectors() const { return as_size(chunk_.count) * as_size(chunk_.shape.query_heads); }
  std::size_t elements() const { return vectors() * as_size(chunk_.shape.head_dim); }
  /// Number of recorded keys.
  int keys() const { return std::max(0, std::min(chunk_.recorded.end, end()) - chunk_.recorded.begin); }
  int end() const { return chunk_.first + chunk_.count; }

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

  /// Whether the kernels can compute the chunk.
  bool supports(const cache::LayerScratch& scratch) const;
  bool attend_over_copies(const cache::LayerScratch& scratch);
  void place(const cache::LayerScratch& scratch);
  void place(const cache::PastRows& past);
  void upload() const;
  bool store(const NewRows& rows, const cache::LayerScratch& scratch, const ScratchRows& to);
  bool attend(const float* q, float* out, const ScratchRows& rows, const cache::LayerScratch& scratch);
  bool observe(const Part& part, const winnow::device::PrefillTask& prompt);
  void read_statistics();
  void add(const Part& part);

  winnow::device::Device& device_;
  std::unique_ptr<PrefillAttention> cpu_;
  KernelGate gate_;
  bool is_on_cpu_ = false;
  float* logsums_ = nullptr;
  PromptQueries chunk_;
  std::vector<Part> parts_;
  Past past_{};
  WorkSpace work_;
  std::size_t q_ = 0, out_ = 0, runs_ = 0, bad_ = 0, lse_ = 0, packed_ = 0, sinks_ = 0;  ///< offsets
  std::vector<float> columns_;  ///< [recorded keys] of one head
};

}  // namespace winnow::attention::device
