// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "winnow/conversation.h"

namespace winnow::chat {

/// Parts of a message, as a stream sends them: what comes after what was sent before.
struct Delta {
  struct Call {
    std::size_t index = 0;  ///< of the call in the message
    ToolCall more;          ///< id and name in the first delta of a call only
  };
  std::string reasoning = {};
  std::string content = {};
  std::vector<Call> calls = {};
  bool empty() const { return reasoning.empty() && content.empty() && calls.empty(); }
};

/// How a model writes its answer to a prompt: what a grammar can demand of it, and how it is read.
struct AnswerFormat {
  std::string grammar = {};  ///< GBNF; empty: nothing is demanded
  /// Regular expressions that make the grammar lazy (GenerateOptions::grammar_triggers).
  std::vector<std::string> triggers = {};
  std::string prefix = {};                  ///< end of the prompt, with which a grammar without triggers begins
  std::vector<std::string> preserved = {};  ///< control tokens whose names are part of the answer's text
  std::vector<std::string> stops = {};      ///< texts that end an answer, besides the model's end tokens
  std::string thinking_start = {};          ///< tag; empty: the model does not think in tags
  std::vector<std::string> thinking_ends = {};
  bool is_thinking = false;  ///< the prompt ends within the thinking

  /// The message of a whole answer. Text that is not of the model's format is content. Where there is a parser, bytes
  /// that are no UTF-8 become U+FFFD.
  Message parse(std::string_view text) const;

  struct Parser;
  std::shared_ptr<const Parser> parser = {};  ///< null: the text is the content
};

/// Reads an answer while it comes. The deltas together are message(), however the text is cut into chunks.
class AnswerReader {
 public:
  explicit AnswerReader(AnswerFormat format);

  /// Adds to the answer, and returns what can be said of it now.
  Delta add(std::string_view text);
  /// Returns what is left when the answer has ended.
  Delta end();
  const Message& message() const { return sent_; }

 private:
  Delta advance_to(const Message& read, std::size_t whole_calls);

  AnswerFormat format_;
  std::string held_;  // the beginning of a character
  std::string text_;
  std::size_t next_ = 1;  // length of the text at which it is read again
  std::size_t read_ = 0;  // length at which it was last found to be of the format
  Message sent_;
};

}  // namespace winnow::chat
