// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stop_token>
#include <utility>

#include "winnow/error.h"

namespace winnow {

/// During its lifetime the work of this thread can be stopped: loops over data from outside call check(). Scopes may be
/// nested; the innermost one counts.
class StopScope {
 public:
  explicit StopScope(std::stop_token token) : token_(std::move(token)), outer_(current_) { current_ = &token_; }
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;
  ~StopScope() { current_ = outer_; }

  /// Throws Interrupted if a stop has been requested. Does nothing outside all scopes.
  static void check() {
    if (current_ != nullptr && current_->stop_requested()) throw Interrupted("stopped");
  }

 private:
  static inline thread_local const std::stop_token* current_ = nullptr;
  const std::stop_token token_;
  const std::stop_token* outer_;
};

}  // namespace winnow
