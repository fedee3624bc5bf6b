// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "chat/answer_format.h"
#include "server/answers/events.h"

namespace winnow::server {

/// Decides what of an answer is text, what is reasoning and what are calls. It takes nothing back.
class AnswerReader {
 public:
  AnswerReader() = default;
  AnswerReader(const AnswerReader&) = delete;
  AnswerReader& operator=(const AnswerReader&) = delete;
  virtual ~AnswerReader() = default;

  /// Reads more of the answer.
  virtual AnswerPiece take(std::string_view text) = 0;
  /// Reads what is left when the answer has ended.
  virtual AnswerPiece finish() = 0;
};

/// A reader to which all is text.
std::unique_ptr<AnswerReader> text_reader();
/// A reader that goes by the format of the model's chat template.
std::unique_ptr<AnswerReader> format_reader(const chat::AnswerFormat& format);

}  // namespace winnow::server
