// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cache/scratch.h"
#include "engine/hidden_states.h"
#include "engine/session_impl.h"

namespace winnow::documents {

/// Reads and writes of the rows in one layer.
struct RowPlan {
  std::vector<std::int32_t> store;    ///< [row]: row of the scratch for its keys and values; negative: none
  std::vector<std::int32_t> leading;  ///< [row]: number of first rows of the scratch that it sees, ascending
  std::vector<std::int32_t> own;      ///< [row]: one more row that it sees; negative: none
};

/// Runs chosen tokens through the layers. Some may be dropped between layers.
class ChosenTokens {
 public:
  /// `positions`: joint positions, ascending. Throws MemoryError.
  ChosenTokens(Session::Impl& session, std::span<const Token> tokens, std::span<const std::int32_t> positions);

  int rows() const { return static_cast<int>(positions_.size()); }
  std::span<const std::int32_t> positions() const { return positions_; }

  /// Keys and values of some rows, [n][H_kv][d] each.
  struct KeysAndValues {
    std::vector<float> keys;
    std::vector<float> values;
  };
  KeysAndValues project(int layer, std::span<const int> rows);
  /// Runs all rows through a layer. Adds their rotated queries to `query_sum` [H_q][d] unless it is empty.
  void run(int layer, cache::LayerScratch& scratch, const RowPlan& plan, std::span<double> query_sum = {});
  /// Keeps only these rows, ascending.
  void keep(std::span<const int> rows);
  /// Logits of the last row, after the last layer.
  std::vector<float> logits();

 private:
  Session::Impl& session_;
  std::vector<std::int32_t> positions_;
  engine::HiddenStates hidden_;
  network::Pass packed_;
};

}  // namespace winnow::documents
