// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/session_impl.h"
#include "winnow/session.h"

namespace winnow::engine {

/// What makes the cache of a request that is not a text: by quanta, so that others go on in between. It may throw what
/// a prefill throws, which ends the request.
class CacheSource {
 public:
  CacheSource() = default;
  CacheSource(const CacheSource&) = delete;
  CacheSource& operator=(const CacheSource&) = delete;
  virtual ~CacheSource() = default;

  /// Tokens that the cache will have seen.
  virtual int tokens() const = 0;
  /// The most bytes that it has in use until the cache is taken, with those of the cache.
  virtual std::size_t bytes(const Session::Impl& session) const = 0;
  /// Bytes of the cache, at most.
  virtual std::size_t cache_bytes(const Session::Impl& session) const = 0;

  /// The session outlives it.
  virtual void begin(Session::Impl& session) = 0;
  /// One quantum. Returns false when the cache is there.
  virtual bool advance() = 0;
  /// Whether nothing can be done until somebody else has done something, in another thread; that one then lets
  /// Scheduler::advance() be called again.
  virtual bool is_waiting() const { return false; }
  /// The share that is done, 0 … 1.
  virtual double done() const = 0;

  /// What was made, once. REQUIRES: advance() has returned false.
  virtual Cache take_cache() = 0;
  /// [n_vocab] of the last token, where an answer is to follow.
  virtual std::vector<float> take_logits() = 0;
};

}  // namespace winnow::engine
