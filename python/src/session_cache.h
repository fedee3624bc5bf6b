// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arrays.h"
#include "session_state.h"

namespace winnow::python {

/// Placeholder in a transcript for the tokens of combined documents. Such a cache can answer but not be saved.
inline constexpr Token kUnknown = -1;

using Logits = std::shared_ptr<const std::vector<float>>;

/// A cache, with the state that is needed to continue it. Keeps its session alive.
class SessionCache {
 public:
  /// `cached_tokens`: as Prefilled::cached_tokens.
  SessionCache(std::shared_ptr<SessionState> session, Cache cache, Logits logits, Transcript transcript,
               int cached_tokens = 0)
      : session_(std::move(session)),
        cache_(std::move(cache)),
        logits_(std::move(logits)),
        transcript_(std::move(transcript)),
        cached_tokens_(cached_tokens) {}

  SessionState& session() const { return *session_; }
  /// The session, for its model and its calls. Does not give access to the cache.
  const std::shared_ptr<SessionState>& shared_session() const { return session_; }
  /// REQUIRES: within a call of the session. Throws UsageError while a stream generates from it.
  Cache& cache();
  /// Moves the cache to a stream, and back. REQUIRES: as cache().
  Cache lend();
  void give_back(Cache cache) { cache_ = std::move(cache); }

  /// Logits of the last token, [n_vocab]; null if they are not known.
  const Logits& logits() const { return logits_; }
  void set_logits(Logits logits) { logits_ = std::move(logits); }
  Transcript& transcript() { return transcript_; }
  const Transcript& transcript() const { return transcript_; }
  int cached_tokens() const { return cached_tokens_; }

  /// Tokens of the transcript that the cache has not seen, followed by those of the question. Adds the latter to the
  /// transcript, too.
  std::vector<Token> tokens_for(const std::string& question);
  std::vector<Token> tokens_for(const std::vector<Token>& more);
  /// Tokens of the transcript that the cache has not seen. REQUIRES: within a call of the session.
  std::vector<Token> unseen();

 private:
  std::shared_ptr<SessionState> session_;
  std::optional<Cache> cache_;  ///< empty while a stream has it
  Logits logits_;
  Transcript transcript_;
  int cached_tokens_;
};

using CachePointer = std::shared_ptr<SessionCache>;

Logits share(std::vector<float> logits);

}  // namespace winnow::python
