// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <exception>
#include <mutex>

#include "network/attention_op.h"

namespace winnow::engine {

/// Attention by a team of threads: the phases common to prefill and decoding. After an error, which is kept, later
/// phases are skipped.
class TeamAttention : public network::AttentionOp {
 public:
  void phase(int number, const Tensors& tensors, Worker worker) noexcept final;
  /// Throws the kept error, if any. REQUIRES: the graph has run.
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 protected:
  /// Stores K and V of the rows.
  virtual void store(const Tensors& tensors, Worker worker) = 0;
  /// Prepares the reads of all queries. Runs in one thread after all have stored.
  virtual void begin(const Tensors& tensors) = 0;
  virtual void attend(const Tensors& tensors, Worker worker) = 0;
  /// Combines the partial results of attend().
  virtual void reduce(Worker worker) = 0;
  /// Runs after reduce().
  virtual void finish(const Tensors& /*tensors*/, Worker /*worker*/) {}

 private:
  void store_and_begin(const Tensors& tensors, Worker worker);
  void keep_error();

  std::atomic<int> stored_ = 0;  ///< threads that have stored
  std::mutex error_mutex_;
  std::exception_ptr error_;
};

}  // namespace winnow::engine
