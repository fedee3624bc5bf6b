// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/memory.h"
#include "engine/team_attention.h"
#include "model/hparams.h"
#include "network/executor.h"
#include "winnow/model.h"

namespace winnow::engine {

/// Consecutive rows.
struct RowRange {
  int first = 0;
  int count = 0;
};

/// Splits rows [0, rows) into chunks of at most `most` rows.
std::vector<RowRange> chunks_of(int rows, int most);

/// The hidden states of some tokens on their way through the layers.
class HiddenStates {
 public:
  /// Starts with the tokens' embeddings. Throws MemoryError that names `purpose`.
  HiddenStates(network::Executor& executor, const model::Hparams& hparams, MemoryAccount& account,
               std::span<const Token> tokens, const char* purpose);

  int rows() const { return rows_; }
  const network::States& states() const { return states_; }

  /// Runs rows from `first` on, one for each position, through a layer; all of it if its experts' work is deferred.
  /// Throws errors of the executor and those that `attention` has kept.
  void run_layer(const network::Pass& pass, int layer, int first, std::span<const std::int32_t> positions,
                 TeamAttention& attention, network::Until until = network::Until::output);
  /// Runs the next part of a layer's deferred work after all rows have passed through it. Returns false when nothing is
  /// left.
  bool advance_layer(const network::Pass& pass, int layer);
  /// Keeps only these rows, ascending.
  void keep(std::span<const int> rows);
  /// Logits of a row after the last layer, [n_vocab].
  std::vector<float> logits(int of);
  /// Logits of several rows, [count][n_vocab].
  void logits(RowRange of, std::span<float> out);
  /// Rows after the last layer and the final norm, [count][n_embd].
  void last_states(RowRange of, std::span<float> out);

 private:
  network::Executor& executor_;
  const model::Hparams& hparams_;
  MemoryAccount& account_;
  network::States states_;     ///< the first rows are those of the tokens
  std::vector<Token> tokens_;  ///< for layers that embed tokens themselves
  int rows_;
  std::optional<network::ExpertRows> later_;  ///< deferred work of experts; created when a layer needs it
};

}  // namespace winnow::engine
