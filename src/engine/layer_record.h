// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/memory.h"
#include "model/hparams.h"
#include "winnow/counted_vector.h"
#include "winnow/policy/observer.h"

namespace winnow::engine {

/// Records all queries of the layer that a prompt is passing, and sums of their attention.
class LayerRecord : public policy::Observer {
 public:
  /// Allocates memory for a prompt of `tokens` tokens. Throws MemoryError.
  LayerRecord(const model::Hparams& hparams, MemoryAccount& account, int tokens);
  static std::size_t bytes(const model::Hparams& hparams, int tokens);

  policy::ObserverNeeds needs() const override { return {.queries = true}; }
  std::vector<attention::ColumnStatistics*> columns() override { return {&sums_, &diagonal_}; }
  float* logsums() override { return logsums_.data(); }
  void begin_layer(const policy::ObservedLayer& layer) override;
  void see_rows(const policy::LayerRows& rows, Worker worker) override;

 protected:
  std::span<const float> queries() { return queries_.as<float>(); }  ///< [N][H_q][d], rotated
  std::span<const float> log_sums() const { return logsums_; }       ///< [N][H_q], log of each sum of exp(logit)
  const attention::ColumnStatistics& sums() const { return sums_; }  ///< attention that each key gets from all queries
  /// Attention of each query to its own token.
  const attention::ColumnStatistics& diagonal() const { return diagonal_; }

 private:
  Buffer queries_;
  CountedVector<float> logsums_;
  attention::ColumnStatistics sums_;
  attention::ColumnStatistics diagonal_;
  std::size_t width_ = 0;  ///< H_q d of the layer
};

}  // namespace winnow::engine
