// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arrays.h"
#include "session_state.h"

namespace winnow::python {

/// Stands in a transcript for the tokens of documents that were put together: such a cache answers, but is not saved.
inline constexpr Token kUnknown = -1;

using Logits = std::shared_ptr<const std::vector<float>>;

/// A cache, with what is needed to go on from it. It keeps its session alive.
class SessionCache {
 public:
  SessionCache(std::shared_ptr<SessionState> session, Cache cache, Logits logits, Transcript transcript)
      : session_(std::move(session)),
        cache_(std::move(cache)),
        logits_(std::move(logits)),
        transcript_(std::move(transcript)) {}

  SessionState& session() const { return *session_; }
  /// Of which only the model and calls are used.
  const std::shared_ptr<SessionState>& shared_session() const { return session_; }
  /// REQUIRES: a call of the session. Throws UsageError while a stream generates from it.
  Cache& cache();
  /// Takes the cache for a stream, and puts it back. REQUIRES: as above.
  Cache lend();
  void give_back(Cache cache) { cache_ = std::move(cache); }

  /// [n_vocab] of the last token; null where they are not known.
  const Logits& logits() const { return logits_; }
  void set_logits(Logits logits) { logits_ = std::move(logits); }
  Transcript& transcript() { return transcript_; }
  const Transcript& transcript() const { return transcript_; }

  /// Tokens of the transcript that the cache has not seen, then those of the question, which the transcript gets, too.
  std::vector<Token> tokens_for(const std::string& question);
  std::vector<Token> tokens_for(const std::vector<Token>& more);
  /// REQUIRES: a call of the session.
  std::vector<Token> unseen();

 private:
  std::shared_ptr<SessionState> session_;
  std::optional<Cache> cache_;  ///< empty while a stream has it
  Logits logits_;
  Transcript transcript_;
};

using CachePointer = std::shared_ptr<SessionCache>;

Logits share(std::vector<float> logits);

}  // namespace winnow::python
