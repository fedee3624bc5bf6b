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

/// Runs one graph over all layers for some rows. In each layer K and V enter the lanes, where a method may evict an
/// entry to make room; each row's query reads its lane as it is after its own token; then a method that scores while
/// decoding sees the attention. Logits [n][n_vocab] of the last n rows. Rows of several sequences are bit for bit what
/// each would be alone; those of one alone are multiplied together. REQUIRES: one row of each sequence whose method
/// changes lanes while decoding, as a later row would overwrite what an earlier one reads.
class Stepper {
 public:
  /// `calibration` is for methods that need it.
  Stepper(network::Executor& executor, attention::DecodeAttention& attention, const model::Hparams& hparams,
          MemoryAccount& account, const Calibration* calibration = nullptr)
      : executor_(executor), attention_(attention), hparams_(hparams), account_(account), calibration_(calibration) {}

  /// Throws MemoryError before anything has changed, Interrupted.
  void run(std::span<const StepRow> rows, std::span<float> logits);

 private:
  /// Finds places for the probabilities of all rows.
  std::vector<Watched> place_probabilities(std::span<const StepRow> rows);

  network::Executor& executor_;
  attention::DecodeAttention& attention_;
  const model::Hparams& hparams_;
  MemoryAccount& account_;
  const Calibration* calibration_;
  Buffer probabilities_;  ///< of one layer, for the rows whose methods ask for them
};

/// A step after a text of so many tokens and, at most, so many more.
struct StepSize {
  int text = 0;
  int more = 0;
  int rows = 1;  ///< of one sequence
};

/// Bytes of the work space of such a step that depends on the length of lanes, at most.
std::size_t step_bytes(const CacheOptions& options, const model::Hparams& hparams, const StepSize& size);

}  // namespace winnow::engine
