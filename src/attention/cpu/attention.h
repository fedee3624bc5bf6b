// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "attention/attention.h"
#include "base/memory.h"

namespace winnow::attention::cpu {

/// Attention of prompts by a team of threads, tile by tile, with online softmax. Each thread stores the probability
/// tiles of one query block's observed rows.
class Prefill final : public PrefillAttention {
 public:
  /// REQUIRES: supports(compute_type).
  Prefill(MemoryAccount& account, int max_threads, ComputeType compute_type = ComputeType::f32);
  ~Prefill() override;

  void begin(const PromptQueries& queries, const cache::LayerScratch& scratch) override;
  void begin(const Shape& shape, const cache::LayerScratch& scratch, const float* q, float* out,
             const VisibleRange& visible) override;
  void record_logsums(float* sums) override;
  void run(Worker worker) override;
  void reduce(Worker worker) override;
  std::size_t recording_bytes(const Shape& shape, const Chunk& chunk,
                              std::span<const PromptColumns> observed) const override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Attention of decode steps by a team of threads. Long runs are split so that threads read about the same number of
/// bytes.
class Decode final : public DecodeAttention {
 public:
  Decode(MemoryAccount& account, int max_threads);
  ~Decode() override;

  void begin(const Shape& shape, const Rope& rope, std::span<const DecodeRead> reads, const float* q, float* out,
             int rows) override;
  void run(Worker worker) override;
  void merge(Worker worker) override;
  std::size_t bytes(const Shape& shape, int rows, const LaneSize& lane, const Rope* rope, int end) const override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace winnow::attention::cpu
