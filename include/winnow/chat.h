// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "winnow/answer_splitter.h"
#include "winnow/export.h"
#include "winnow/generate.h"
#include "winnow/questions.h"
#include "winnow/session.h"

namespace winnow {

/// An answer with its timings.
struct Reply {
  Generation generation;
  Message message;        ///< the generation, with reasoning and content separated
  int tokens_read = 0;    ///< before the answer began
  int cached_tokens = 0;  ///< others that were found in the session's store, when the conversation was read anew
  double read_ms = 0;
  double answer_ms = 0;
};

/// A conversation with a model and its cache. The first turn is prefilled and compressed after its question. Later
/// turns depend on the protocol, if the method evicts once. With Protocol::aware, each turn reads the conversation
/// anew, from SessionOptions::texts as far as it is there, and the method selects from all of it with the new question
/// seen. With Protocol::agnostic, and with other methods, turns are appended to the cache, and compressed by
/// compress_turn(). Nothing is read before a turn needs it.
class WINNOW_EXPORT Chat {
 public:
  /// Keeps a reference to the session. REQUIRES: `conversation` has no messages of the user or the assistant.
  Chat(Session& session, Conversation conversation, CacheOptions cache, GenerateOptions generate,
       Protocol protocol = Protocol::agnostic);

  /// Asks a question and streams the answer. If it throws, the conversation is unchanged; an interrupted answer stays
  /// part of it. Throws winnow::Error.
  Reply say(const std::string& words, const OnAnswerPart& on_part);

  /// Compresses the tokens of the last turn as a separate prompt if the method is one-shot and turns are appended. If
  /// it throws or is stopped, these tokens are compressed after the next turn. Throws MemoryError.
  void compress_turn();

  /// Drops the cache: the next turn reads the whole conversation again and compresses it with these options.
  void keep_by(const CacheOptions& cache);
  /// Clears the conversation and the cache.
  void reset();

  /// Writes the conversation and its cache to a file. Throws UsageError if there is no cache, and whatever
  /// Session::save() throws.
  void save(const std::string& path) const;
  /// Continues a saved conversation with its cache options. A text without questions was compressed before any was
  /// seen, so turns are appended to its cache. If it throws, this conversation is unchanged.
  void load(const std::string& path);

  const CacheOptions& cache_options() const { return cache_options_; }
  Protocol protocol() const { return protocol_; }
  /// True if turns are not appended: each one reads the conversation anew.
  bool reads_anew() const { return protocol_ == Protocol::aware && compresses() && !begins_with_cache_; }
  /// Tokens of the conversation so far.
  int tokens() const { return static_cast<int>(transcript_.tokens.size()); }
  /// Tokens that the next turn reads before its own: the whole conversation if there is no cache.
  int unread() const;
  /// Empty if there is no cache.
  std::optional<CacheStats> stats() const;

 private:
  /// A conversation up to where the answer of its last question begins.
  struct Asked {
    Transcript transcript;
    std::size_t question = 0;  ///< last tokens that are the question
  };
  /// The conversation with a new question. Drops the cache if the tokens do not continue it.
  Asked with(const std::string& words);
  void warn_about_length(std::size_t tokens);
  /// Reads the tokens that the cache has not seen; returns the logits of the last token. Counts them in the reply.
  std::vector<float> read(const Asked& asked, Reply& reply);
  std::vector<float> read_anew(const Asked& asked, Reply& reply);
  /// Fills in the reply's generation and message.
  void answer(const Conversation& asked, const std::vector<float>& logits, const OnAnswerPart& on_part, Reply& reply);
  Reply read_and_answer(Asked asked, const OnAnswerPart& on_part);
  bool compresses() const;
  /// Remembers what compress_turn() will need.
  void begin_turn(const CacheMark& mark);

  Session& session_;
  CacheOptions cache_options_;
  GenerateOptions generate_;
  Protocol protocol_;
  Transcript transcript_;  ///< with the answers as generated; the cache may lack the last tokens
  std::optional<Cache> cache_;
  std::size_t compressed_ = 0;           ///< tokens seen by the cache that need no more compression
  std::optional<CacheMark> turn_begin_;  ///< where the tokens after `compressed_` begin; set if the model has windows
  bool begins_with_cache_ = false;       ///< of a text that was compressed before any question was seen
  bool warned_ = false;                  ///< about the length of the conversation
  bool rewritten_ = false;               ///< the template rewrote earlier messages, and a warning was given
};

}  // namespace winnow
