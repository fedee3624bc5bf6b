// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <exception>
#include <mutex>

#include "network/attention_op.h"

namespace winnow::engine {

/// Attention by a team, in the order that all kinds of it share. An error is kept, and what would follow it is skipped.
class TeamAttention : public network::AttentionOp {
 public:
  void stage(int number, const Tensors& tensors, Worker worker) noexcept final;
  /// Throws what was kept. REQUIRES: the graph has run.
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 protected:
  /// Puts K and V of the rows where they are kept.
  virtual void store(const Tensors& tensors, Worker worker) = 0;
  /// By one thread, when all have stored: what each query reads.
  virtual void begin(const Tensors& tensors) = 0;
  virtual void attend(const Tensors& tensors, Worker worker) = 0;
  /// Puts together what attend() has left in parts.
  virtual void reduce(Worker worker) = 0;
  /// When all of that is done.
  virtual void observe(const Tensors& /*tensors*/, Worker /*worker*/) {}

 private:
  void store_and_begin(const Tensors& tensors, Worker worker);
  void keep_error();

  std::atomic<int> stored_ = 0;  ///< threads that are done with storing
  std::mutex error_mutex_;
  std::exception_ptr error_;
};

}  // namespace winnow::engine
