// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "winnow/export.h"
#include "winnow/session.h"

namespace winnow {

/// Text that a one-shot method has seen when it chooses the entries to keep.
enum class Protocol : std::uint8_t {
  aware,     ///< text and question
  agnostic,  ///< text only
};
inline constexpr std::array kProtocols{Protocol::aware, Protocol::agnostic};

/// State in which an answer begins: the prompt has been read to the end of its question.
struct AnswerStart {
  std::vector<Cache> caches;               ///< one for each CacheOptions
  std::vector<std::vector<float>> logits;  ///< [cache][n_vocab] of the last token
  std::vector<CacheStats> stats;           ///< of each cache just after compression
  int cached_tokens = 0;                   ///< tokens of the prompt that were found in the session's store
};

/// Questions about one text, which is read once for all of them.
class WINNOW_EXPORT Questions {
 public:
  /// Reads the text, and also the questions if the protocol compresses after them or the text is empty. Keeps a
  /// reference to the session. A question without tokens is answered from the end of the text. REQUIRES: at least one
  /// question. Throws what Session::prefill() throws.
  Questions(Session& session, std::span<const Token> text, std::vector<std::vector<Token>> questions, Protocol protocol,
            std::span<const CacheOptions> caches);
  /// Questions about a text that was already read and compressed.
  Questions(Session& session, Prefilled text, std::vector<std::vector<Token>> questions);

  std::size_t size() const { return questions_.size(); }
  /// The compressed text, to which each question is appended; null if each question was read together with the text.
  const Prefilled* text() const { return text_ ? &*text_ : nullptr; }

  /// Reads a question. REQUIRES: questions are asked in order, each once; the last one takes the text's caches, the
  /// others copies. Throws what Session::extend() throws, and MemoryError.
  AnswerStart ask(std::size_t question);

 private:
  AnswerStart ask_text(const std::vector<Token>& question, Prefilled text);

  Session& session_;
  std::vector<std::vector<Token>> questions_;
  std::optional<Prefilled> text_;
  std::vector<Prefilled> read_;  ///< with their questions
};

}  // namespace winnow
