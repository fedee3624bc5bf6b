// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "attention/attention.h"
#include "engine/lane_attention.h"
#include "network/executor.h"
#include "winnow/session.h"

namespace winnow::engine {

/// Size of a step.
struct StepSize {
  int text = 0;  ///< tokens of the text before
  int more = 0;  ///< the most tokens that have been appended to it
  int rows = 1;  ///< rows of one sequence
};

/// Runs one graph over all layers for some rows. In each layer K and V enter the lanes, and a method may evict an entry
/// to make room. Then each row's query reads its lane up to its own token. Then methods that score while decoding see
/// the attention. Returns logits [n][n_vocab] of the last n rows. Rows of several sequences are bit for bit what each
/// would be alone; the rows of a single sequence are multiplied together. REQUIRES: one row for each sequence whose
/// method changes lanes while decoding, because a later row would overwrite entries that an earlier one reads.
class Stepper {
 public:
  /// `calibration` may be null if no method needs it.
  Stepper(network::Executor& executor, attention::DecodeAttention& attention, const model::Hparams& hparams,
          MemoryAccount& account, const Calibration* calibration = nullptr, StepRows step_rows = StepRows::together)
      : executor_(executor),
        attention_(attention),
        hparams_(hparams),
        account_(account),
        calibration_(calibration),
        step_rows_(step_rows) {}

  /// Throws MemoryError before anything has changed, Error after that, or Interrupted.
  void run(std::span<const StepRow> rows, std::span<float> logits);

  /// Upper bound of the part of a step's work space that depends on the length of lanes.
  std::size_t bytes(const CacheOptions& options, const StepSize& size) const;

 private:
  /// Runs rows that pass through the network together. REQUIRES: room for them in their lanes. Throws as run().
  void pass(std::span<const StepRow> rows, std::span<float> logits);
  /// Runs each sequence's rows in a pass of its own.
  void pass_alike(std::span<const StepRow> rows, std::span<float> logits);
  /// Assigns a place in `probabilities_` to each row.
  std::vector<RowProbabilities> place_probabilities(std::span<const StepRow> rows, const LayerPlaces& places);

  network::Executor& executor_;
  attention::DecodeAttention& attention_;
  const model::Hparams& hparams_;
  MemoryAccount& account_;
  const Calibration* calibration_;
  StepRows step_rows_;
  Buffer probabilities_;  ///< LayerPlaces, for rows whose methods observe attention
};

}  // namespace winnow::engine
