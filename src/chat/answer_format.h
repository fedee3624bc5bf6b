// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "winnow/conversation.h"

namespace winnow::chat {

/// Delta of a message in a stream: the parts that follow what was sent before.
struct Delta {
  struct Call {
    std::size_t index = 0;  ///< index of the call in the message
    ToolCall more;          ///< id and name only in the first delta of a call
  };
  std::string reasoning = {};
  std::string content = {};
  std::vector<Call> calls = {};
  bool empty() const { return reasoning.empty() && content.empty() && calls.empty(); }
};

/// Format of a model's answer to a prompt: the grammar that enforces it, and the parser that reads it.
struct AnswerFormat {
  std::string grammar = {};  ///< GBNF; empty: none
  /// Regular expressions that make the grammar lazy (GenerateOptions::grammar_triggers).
  std::vector<std::string> triggers = {};
  std::string prefix = {};                  ///< end of the prompt that a grammar without triggers covers, too
  std::vector<std::string> preserved = {};  ///< control tokens that appear by name in the answer's text
  std::vector<std::string> stops = {};      ///< texts that end an answer, in addition to the model's end tokens
  std::string thinking_start = {};          ///< tag; empty: no thinking in tags
  std::vector<std::string> thinking_ends = {};
  bool is_thinking = false;  ///< the prompt ends within the thinking

  /// The message of a whole answer. Text that does not have the model's format is content. With a parser, bytes that
  /// are not UTF-8 become U+FFFD.
  Message parse(std::string_view text) const;

  struct Parser;
  std::shared_ptr<const Parser> parser = {};  ///< null: the text is the content
};

/// Parses an answer while it arrives. The deltas add up to message(), however the text is divided.
class AnswerReader {
 public:
  explicit AnswerReader(AnswerFormat format);

  /// Appends to the answer and returns the next delta.
  Delta add(std::string_view text);
  /// Ends the answer and returns the last delta.
  Delta end();
  const Message& message() const { return sent_; }

 private:
  Delta advance_to(const Message& read, std::size_t whole_calls);

  AnswerFormat format_;
  std::string held_;  // incomplete character
  std::string text_;
  std::size_t next_ = 1;  // length of the text at which it is parsed next
  std::size_t read_ = 0;  // length at which it last had the format
  Message sent_;
};

}  // namespace winnow::chat
