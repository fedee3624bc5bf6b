// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>

#include "engine/session_impl.h"
#include "winnow/scheduler.h"

namespace winnow::engine {

/// Rows of a text whose logits are computed together.
inline constexpr int kScoredRows = 64;

/// The most bytes that a request has in use.
struct Promise {
  std::size_t reading = 0;    ///< while its text is read
  std::size_t answering = 0;  ///< from then on

  std::size_t most() const { return std::max(reading, answering); }
};

/// Throws UsageError when the budget is too small for the method.
Promise promise_of(const Request& request, const Session::Impl& session);

}  // namespace winnow::engine
