// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "attention/attention.h"
#include "attention/moments.h"
#include "attention/tiles.h"
#include "base/as_size.h"
#include "base/memory.h"
#include "cache/growing_lanes.h"
#include "cache/scratch.h"
#include "engine/predicted_scores.h"
#include "engine/sequence.h"
#include "engine/team_attention.h"
#include "winnow/policy/attention.h"

namespace winnow::engine {

/// Where something is written down for each row of the scratch; null: it is not. Rows that pass later overwrite none.
struct RowRecords {
  float* queries = nullptr;  ///< [rows][H_q][d], rotated
  float* logsums = nullptr;  ///< [rows][H_q] logarithm of each query's sum of exp(logit); of a prompt that stands alone
  float* inputs = nullptr;   ///< [rows][n_embd] what queries, keys and values are made of
};

/// Who looks on while rows pass through a layer.
struct Watchers {
  std::vector<attention::Observation*> observations;
  std::vector<attention::QueryMoments*> moments;
  attention::KeyRange recorded = {};  ///< by the observations
  RowRecords records = {};
  std::vector<attention::TileAttention*> tiles = {};
  std::vector<attention::QueryRows*> query_rows = {};
  std::vector<PredictedScores*> predictions = {};

  /// Whether a row's probabilities are scaled by some of the observations.
  bool scale_rows() const;

  void add(const Watchers& others) {
    observations.insert(observations.end(), others.observations.begin(), others.observations.end());
    moments.insert(moments.end(), others.moments.begin(), others.moments.end());
    tiles.insert(tiles.end(), others.tiles.begin(), others.tiles.end());
    query_rows.insert(query_rows.end(), others.query_rows.begin(), others.query_rows.end());
    predictions.insert(predictions.end(), others.predictions.begin(), others.predictions.end());
  }
};

/// Some rows of a prompt at one layer: K and V go to the scratch, and the queries read the scratch up to themselves.
class PromptAttention : public TeamAttention {
 public:
  /// The rows are those from row `first` of the scratch on.
  PromptAttention(const attention::Shape& shape, cache::LayerScratch& scratch, int first, Watchers watchers)
      : shape_(shape),
        scratch_(scratch),
        first_(first),
        watchers_(std::move(watchers)),
        row_scales_(watchers_.scale_rows() ? as_size(scratch.size() - first) : 0) {}

 protected:
  void store(const Tensors& tensors, Worker worker) final;
  /// Of the rows, where an observation asks for it; else null.
  const float* row_scales() const { return row_scales_.empty() ? nullptr : row_scales_.data(); }
  void observe(const Tensors& tensors, Worker worker) override;

  attention::Shape shape_;
  cache::LayerScratch& scratch_;
  int first_;
  Watchers watchers_;

 private:
  void scale_rows(const Tensors& tensors, Worker worker);
  void record_rows(const Tensors& tensors, Worker worker) const;
  void look_at_inputs(const Tensors& tensors, Worker worker) const;

  std::vector<float> row_scales_;
};

/// Of a prompt that stands alone.
class ChunkAttention : public PromptAttention {
 public:
  ChunkAttention(attention::PrefillAttention& attention, const attention::Shape& shape, cache::LayerScratch& scratch,
                 int first, Watchers watchers)
      : PromptAttention(shape, scratch, first, std::move(watchers)), attention_(attention) {}
  ~ChunkAttention() override { attention_.record_logsums(nullptr); }

 private:
  void begin(const Tensors& tensors) override;
  void attend(const Tensors& /*tensors*/, Worker worker) override { attention_.run(worker); }
  void reduce(Worker worker) override { attention_.reduce(worker); }

  attention::PrefillAttention& attention_;
};

/// What a prompt comes after: of these lanes, the entries that stand before it in the text.
struct PastLanes {
  MemoryAccount& account;
  attention::DecodeAttention& attention;
  const Sequence& sequence;
  int tokens = 0;                        ///< position of the prompt's first token
  const WindowLanes* windows = nullptr;  ///< set: of layers with windows, these lanes instead
  Buffer probabilities = {};             ///< of one layer, for the rows that are observed

  const cache::LayerLanes& lanes(int layer) const;
};

/// Of a prompt that comes after others: its queries read what is left of them too. Observed is their attention to the
/// prompt.
class LaterAttention : public PromptAttention {
 public:
  /// Rows that pass through a layer together, with the probabilities of all their queries.
  static constexpr int kRows = 64;

  LaterAttention(PastLanes& past, int layer, cache::LayerScratch& scratch, int first, Watchers watchers);

 private:
  void begin(const Tensors& tensors) override;
  void attend(const Tensors& /*tensors*/, Worker worker) override { past_.attention.run(worker); }
  void reduce(Worker worker) override { past_.attention.merge(worker); }
  void observe(const Tensors& tensors, Worker worker) override;

  void read(int row, int head);
  /// Adds what a row sees of the lane and of the scratch to pieces_.
  void add_pieces(int row, int head);
  void add_pieces_of_window(int row, int head);
  void add_own_piece(int head, int first_row, int end_row);
  bool is_observed(int row) const;
  void observe_row(attention::Observation& observation, int row, int head) const;
  /// Where the probabilities of a row of the scratch lie, of the lane's entries and then of the scratch.
  float* probabilities_of(int row, int query_head) const;

  PastLanes& past_;
  const Rope& rope_;
  const cache::LayerLanes& lanes_;
  std::vector<int> slots_;    ///< [H_kv] of the lanes that are read
  std::vector<int> entries_;  ///< [H_kv] the same with their merged entries
  int stride_ = 0;            ///< of one query head's probabilities
  int rows_ = 0;
  std::vector<attention::DecodeRead> reads_;
  std::vector<cache::LanePiece> pieces_;
};

}  // namespace winnow::engine
