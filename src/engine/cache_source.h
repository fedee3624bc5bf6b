// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/session_impl.h"
#include "winnow/session.h"

namespace winnow::engine {

/// Makes the cache of a request that has no text. It works by quanta, so that other requests make progress in between.
/// It may throw the errors of a prefill, which end the request.
class CacheSource {
 public:
  CacheSource() = default;
  CacheSource(const CacheSource&) = delete;
  CacheSource& operator=(const CacheSource&) = delete;
  virtual ~CacheSource() = default;

  /// Tokens that the cache will have seen.
  virtual int tokens() const = 0;
  /// The most bytes in use until the cache is taken, the cache included.
  virtual std::size_t bytes(const Session::Impl& session) const = 0;
  /// Upper bound of the cache's bytes.
  virtual std::size_t cache_bytes(const Session::Impl& session) const = 0;

  /// The session outlives it.
  virtual void begin(Session::Impl& session) = 0;
  /// Runs one quantum. Returns false when the cache is complete.
  virtual bool advance() = 0;
  /// True while it waits for another thread. That thread must cause another call of Scheduler::advance().
  virtual bool is_waiting() const { return false; }
  /// Fraction that is done, 0 … 1.
  virtual double done() const = 0;

  /// The cache. May be called once. REQUIRES: advance() has returned false.
  virtual Cache take_cache() = 0;
  /// Logits of the last token, [n_vocab]; empty if no answer can follow.
  virtual std::vector<float> take_logits() = 0;
};

}  // namespace winnow::engine
