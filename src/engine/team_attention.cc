// SPDX-License-Identifier: Apache-2.0
#include "engine/team_attention.h"

namespace winnow::engine {

void TeamAttention::phase(int number, const Tensors& tensors, Worker worker) noexcept {
  if (number == 0) {
    store_and_begin(tensors, worker);
    return;
  }
  if (error_) return;  // set before the barrier
  if (number == 1) attend(tensors, worker);
  if (number == 2) reduce(worker);
  if (number == 3) finish(tensors, worker);
}

/// The last thread to finish calls begin().
void TeamAttention::store_and_begin(const Tensors& tensors, Worker worker) {
  try {
    store(tensors, worker);
  } catch (...) {
    keep_error();
  }
  if (stored_.fetch_add(1, std::memory_order_acq_rel) + 1 < worker.count) return;
  stored_.store(0, std::memory_order_relaxed);
  if (error_) return;
  try {
    begin(tensors);
  } catch (...) {
    keep_error();
  }
}

void TeamAttention::keep_error() {
  const std::lock_guard lock(error_mutex_);
  error_ = std::current_exception();
}

}  // namespace winnow::engine
