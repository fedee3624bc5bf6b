// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "engine/session_impl.h"
#include "engine/stages.h"
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

/// Of what is kept of stages.
std::size_t kept_bytes(std::span<const Stage> stages, const CacheOptions& options, const model::Hparams& hparams);

/// Bytes by which a cache of `tokens` tokens can grow when so many more come.
std::size_t growth_bytes(const CacheOptions& options, const model::Hparams& hparams, int tokens, int more);

/// What a request takes when its cache is there.
std::size_t answering_bytes(const Request& request, const Sequence& cache, const Session::Impl& session);

/// Throws UsageError when the budget is too small for the method.
Promise promise_of(const Request& request, const Session::Impl& session);

}  // namespace winnow::engine
