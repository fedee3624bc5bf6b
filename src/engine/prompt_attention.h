// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "attention/attention.h"
#include "cache/past_rows.h"
#include "cache/scratch.h"
#include "engine/team_attention.h"
#include "winnow/policy/observer.h"

namespace winnow::engine {

/// Observers of a chunk, and the keys to which attention is recorded.
struct ChunkObservers {
  std::vector<policy::Observer*> observers = {};
  attention::KeyRange recorded = {};
  int distance = 0;  ///< of rows that copy tokens to the copied rows
};

/// Attention of a chunk of a prompt in one layer. K and V are stored in the scratch. Each query reads the scratch up to
/// its own row, after the layer's entries of the text before.
class PromptAttention : public TeamAttention {
 public:
  /// The chunk begins at row `first` of the scratch. `past` is null if nothing comes before the prompt.
  PromptAttention(attention::PrefillAttention& attention, const attention::Shape& shape, cache::LayerScratch& scratch,
                  int first, ChunkObservers observers, const cache::PastRows* past);
  ~PromptAttention() override { attention_.record_logsums(nullptr); }

 private:
  device::OnDevice attend_on_device(const Tensors& tensors) override;
  void store(const Tensors& tensors, Worker worker) override;
  void begin(const Tensors& tensors) override;
  void attend(const Tensors& /*tensors*/, Worker worker) override { attention_.run(worker); }
  void reduce(Worker worker) override { attention_.reduce(worker); }
  void finish(const Tensors& tensors, Worker worker) override;

  void record_logsums();
  attention::PromptQueries queries(const Tensors& tensors) const;
  void scale_rows(const Tensors& tensors, Worker worker);

  attention::PrefillAttention& attention_;
  attention::Shape shape_;
  cache::LayerScratch& scratch_;
  int first_;
  ChunkObservers chunk_observers_;
  std::vector<attention::ColumnStatistics*> columns_;
  const cache::PastRows* past_;
  std::vector<float> row_scales_;  ///< [rows], if statistics need them; else empty
};

}  // namespace winnow::engine
