// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "chat/answer_format.h"
#include "server/answers/events.h"

namespace winnow::server {

/// Splits an answer into text, reasoning and calls. It never takes back a decision.
class AnswerReader {
 public:
  AnswerReader() = default;
  AnswerReader(const AnswerReader&) = delete;
  AnswerReader& operator=(const AnswerReader&) = delete;
  virtual ~AnswerReader() = default;

  /// Reads more of the answer.
  virtual AnswerDelta take(std::string_view text) = 0;
  /// Reads the rest at the end of the answer.
  virtual AnswerDelta finish() = 0;
};

/// A reader for which everything is text.
std::unique_ptr<AnswerReader> text_reader();
/// A reader for the answer format of the model's chat template.
std::unique_ptr<AnswerReader> format_reader(const chat::AnswerFormat& format);

}  // namespace winnow::server
