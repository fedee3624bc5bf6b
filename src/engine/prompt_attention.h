// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "attention/attention.h"
#include "attention/moments.h"
#include "attention/tiles.h"
#include "base/as_size.h"
#include "cache/past_rows.h"
#include "cache/scratch.h"
#include "engine/predicted_scores.h"
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

/// Some rows of a prompt at one layer: K and V go to the scratch, and the queries read the scratch up to themselves,
/// after what the layer keeps of the text before.
class PromptAttention : public TeamAttention {
 public:
  /// The rows are those from row `first` of the scratch on. `past` is null where nothing comes before the prompt.
  PromptAttention(attention::PrefillAttention& attention, const attention::Shape& shape, cache::LayerScratch& scratch,
                  int first, Watchers watchers, const cache::PastRows* past)
      : attention_(attention),
        shape_(shape),
        scratch_(scratch),
        first_(first),
        watchers_(std::move(watchers)),
        past_(past),
        row_scales_(watchers_.scale_rows() ? as_size(scratch.size() - first) : 0) {}
  ~PromptAttention() override { attention_.record_logsums(nullptr); }

 private:
  void store(const Tensors& tensors, Worker worker) override;
  void begin(const Tensors& tensors) override;
  void attend(const Tensors& /*tensors*/, Worker worker) override { attention_.run(worker); }
  void reduce(Worker worker) override { attention_.reduce(worker); }
  void observe(const Tensors& tensors, Worker worker) override;

  void scale_rows(const Tensors& tensors, Worker worker);
  void record_rows(const Tensors& tensors, Worker worker) const;
  void look_at_inputs(const Tensors& tensors, Worker worker) const;

  attention::PrefillAttention& attention_;
  attention::Shape shape_;
  cache::LayerScratch& scratch_;
  int first_;
  Watchers watchers_;
  const cache::PastRows* past_;
  std::vector<float> row_scales_;  ///< of the rows, where an observation asks for it; else empty
};

}  // namespace winnow::engine
