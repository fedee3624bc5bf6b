// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <vector>

#include "attention/attention.h"
#include "attention/moments.h"
#include "base/memory.h"
#include "cache/growing_lanes.h"
#include "cache/scratch.h"
#include "model/hparams.h"
#include "network/attention_op.h"
#include "winnow/policy/attention.h"

namespace winnow::engine {

/// Who looks on while rows pass through a layer.
struct Watchers {
  std::vector<attention::Observation*> observations;
  std::vector<attention::QueryMoments*> moments;
  attention::KeyRange recorded = {};  ///< by the observations

  void add(const Watchers& others) {
    observations.insert(observations.end(), others.observations.begin(), others.observations.end());
    moments.insert(moments.end(), others.moments.begin(), others.moments.end());
  }
};

/// Some rows of a prompt at one layer: K and V go to the scratch, and the queries read the scratch up to themselves.
class PromptAttention : public network::AttentionOp {
 public:
  /// The rows are those from row `first` of the scratch on.
  PromptAttention(cache::LayerScratch& scratch, int first, const Watchers& watchers)
      : scratch_(scratch), first_(first), watchers_(watchers) {}

  void stage(int number, const Tensors& tensors, Worker worker) noexcept final;
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 protected:
  /// By one thread, while others store.
  virtual void begin(const Tensors& tensors) = 0;
  virtual void attend(Worker worker) = 0;
  virtual void reduce(Worker worker) = 0;
  /// When all of that is done.
  virtual void observe(Worker worker) = 0;

  cache::LayerScratch& scratch_;
  int first_;
  const Watchers& watchers_;

 private:
  void store(const Tensors& tensors, Worker worker);

  std::exception_ptr error_;
};

/// Of a prompt that stands alone.
class ChunkAttention : public PromptAttention {
 public:
  ChunkAttention(attention::PrefillAttention& attention, const attention::Shape& shape, cache::LayerScratch& scratch,
                 int first, const Watchers& watchers)
      : PromptAttention(scratch, first, watchers), attention_(attention), shape_(shape) {}

 private:
  void begin(const Tensors& tensors) override;
  void attend(Worker worker) override { attention_.run(worker); }
  void reduce(Worker worker) override { attention_.reduce(worker); }
  void observe(Worker /*worker*/) override {}

  attention::PrefillAttention& attention_;
  attention::Shape shape_;
};

/// What a prompt comes after: of these lanes, the entries that stand before it in the text.
struct PastLanes {
  MemoryAccount& account;
  attention::DecodeAttention& attention;
  const model::Hparams& hparams;
  const cache::LaneSet& lanes;
  int tokens = 0;             ///< position of the prompt's first token
  Buffer probabilities = {};  ///< of one layer, for the rows that are observed
};

/// Of a prompt that comes after others: its queries read what is left of them too. Observed is their attention to the
/// prompt.
class LaterAttention : public PromptAttention {
 public:
  /// Rows that pass through a layer together, with the probabilities of all their queries.
  static constexpr int kRows = 64;

  LaterAttention(PastLanes& past, int layer, cache::LayerScratch& scratch, int first, const Watchers& watchers);

 private:
  void begin(const Tensors& tensors) override;
  void attend(Worker worker) override { past_.attention.run(worker); }
  void reduce(Worker worker) override { past_.attention.merge(worker); }
  void observe(Worker worker) override;

  void read(int row, int head);
  bool is_observed(int row) const;
  void observe_row(attention::Observation& observation, int row, int head) const;
  /// Where the probabilities of a row of the scratch lie, of the lane's entries and then of the scratch.
  float* probabilities_of(int row, int query_head) const;

  PastLanes& past_;
  const Rope& rope_;
  attention::Shape shape_;
  const cache::LayerLanes& lanes_;
  std::vector<int> slots_;    ///< [H_kv] of the lanes that are read
  std::vector<int> entries_;  ///< [H_kv] the same with their merged entries
  int stride_ = 0;            ///< of one query head's probabilities
  int rows_ = 0;
  std::vector<attention::DecodeRead> reads_;
  std::vector<cache::LanePiece> pieces_;
};

}  // namespace winnow::engine
