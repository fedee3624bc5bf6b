// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "attention/attention.h"
#include "engine/cache_impl.h"
#include "network/executor.h"

namespace winnow::engine {

/// One row of a step: a token and the sequence that it goes to. Rows of one sequence stand in their order.
struct StepRow {
  Cache::Impl* cache = nullptr;
  Token token = 0;
  std::int32_t position = 0;
};

/// Runs one graph over all layers for some rows: K and V enter the lanes (a method that evicts blindly makes room
/// first), then each row's query reads its lane as it stands after its own token, then a method that scores while
/// decoding sees what was attended to. Logits [n][n_vocab] of the last n rows. REQUIRES: no two rows of one sequence
/// when its method changes lanes while decoding, since a later row would overwrite what an earlier one reads.
class Stepper {
 public:
  Stepper(network::Executor& executor, attention::DecodeAttention& attention, const model::Hparams& hparams,
          MemoryAccount& account)
      : executor_(executor), attention_(attention), hparams_(hparams), account_(account) {}

  /// Throws MemoryError before anything has changed, Interrupted.
  void run(std::span<const StepRow> rows, std::span<float> logits);

 private:
  network::Executor& executor_;
  attention::DecodeAttention& attention_;
  const model::Hparams& hparams_;
  MemoryAccount& account_;
  Buffer probabilities_;  ///< of one layer, for the rows whose methods ask for them
};

}  // namespace winnow::engine
