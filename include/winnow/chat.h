// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "winnow/answer_splitter.h"
#include "winnow/export.h"
#include "winnow/generate.h"
#include "winnow/session.h"

namespace winnow {

/// An answer with what it took.
struct Reply {
  Generation generation;
  Message message;      ///< of the generation: what the model has thought is apart from what it says
  int tokens_read = 0;  ///< before the answer could begin
  double read_ms = 0;
  double answer_ms = 0;
};

/// A conversation with a model, and the cache of what has been read of it. The first turn is prefilled, and compressed
/// when its question has been seen; what comes after it is appended, and compressed by compress_turn(). Nothing is read
/// before a turn needs it.
class WINNOW_EXPORT Chat {
 public:
  /// Keeps a reference to the session. Of `conversation` nothing has been said yet.
  Chat(Session& session, Conversation conversation, CacheOptions cache, GenerateOptions generate);

  /// Says something and streams the answer. When it throws, the conversation is as it was before; an answer that is
  /// interrupted stays part of it. Throws winnow::Error.
  Reply say(const std::string& words, const OnAnswerPart& on_part);

  /// Has a one-shot method compress what the last turn added, as a prompt of its own. When it throws or is stopped,
  /// that waits for the next turn's end. Throws MemoryError.
  void compress_turn();

  /// Drops the cache: the next turn reads the whole conversation anew, and compresses it by these options.
  void keep_by(const CacheOptions& cache);
  /// Forgets what was said.
  void reset();

  /// Writes the conversation and its cache to a file. Throws UsageError where there is no cache, and what
  /// Session::save() throws.
  void save(const std::string& path) const;
  /// Goes on with a conversation that was saved, and its cache options. When it throws, this one is as it was before.
  void load(const std::string& path);

  const CacheOptions& cache_options() const { return cache_options_; }
  /// Tokens of the conversation so far.
  int tokens() const { return static_cast<int>(transcript_.tokens.size()); }
  /// Tokens that the next turn reads before its own: all of the conversation where there is no cache.
  int unread() const;
  /// Empty where nothing has been read yet, or will be anew.
  std::optional<CacheStats> stats() const;

 private:
  /// The conversation with these words, up to where the answer begins. Drops a cache that its tokens do not go on from.
  Transcript with(const std::string& words);
  void warn_about_length(std::size_t tokens);
  /// Reads what the cache has not seen; returns the logits of the last token.
  std::vector<float> read(const std::vector<Token>& tokens);
  /// Fills in the reply's generation and message.
  void answer(const Conversation& asked, const std::vector<float>& logits, const OnAnswerPart& on_part, Reply& reply);
  Reply read_and_answer(Transcript transcript, const OnAnswerPart& on_part);
  bool compresses() const;
  /// Remembers what compress_turn() will need.
  void begin_turn(const CacheMark& mark);

  Session& session_;
  CacheOptions cache_options_;
  GenerateOptions generate_;
  Transcript transcript_;  ///< answers as they came; the cache may lack the last tokens
  std::optional<Cache> cache_;
  std::size_t compressed_ = 0;           ///< tokens that the cache has seen and that need not be compressed any more
  std::optional<CacheMark> turn_begin_;  ///< of the tokens after those; set where the model has windows
  bool warned_ = false;                  ///< of its length
  bool rewritten_ = false;               ///< by the template, and that was said
};

}  // namespace winnow
