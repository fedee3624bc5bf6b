// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "server/answers/events.h"
#include "winnow/conversation.h"

namespace winnow::server {

/// Decides what of an answer is text, what is reasoning and what are calls. It takes nothing back.
class AnswerReader {
 public:
  AnswerReader() = default;
  AnswerReader(const AnswerReader&) = delete;
  AnswerReader& operator=(const AnswerReader&) = delete;
  virtual ~AnswerReader() = default;

  /// What more of the answer adds to it.
  virtual AnswerPiece take(std::string_view text) = 0;
  /// What its end adds.
  virtual AnswerPiece finish() = 0;
};

/// Whether more of an answer may come.
enum class AnswerExtent : std::uint8_t { partial, whole };

/// The message that an answer is as far as it has come.
using AnswerParser = std::function<Message(const std::string& text, AnswerExtent extent)>;

/// A reader to which all is text.
std::unique_ptr<AnswerReader> text_reader();
/// A reader that goes by a parser, which sees the whole answer each time.
std::unique_ptr<AnswerReader> message_reader(AnswerParser parse);

}  // namespace winnow::server
