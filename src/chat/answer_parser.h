// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chat.h>

#include <memory>
#include <optional>
#include <string>

#include "chat/answer_format.h"

namespace winnow::chat {

enum class Extent : std::uint8_t { whole, partial };

/// llama.cpp's parser of answers to one prompt. Thread-safe.
struct AnswerFormat::Parser {
  common_chat_parser_params params;
  Message begun = {};                                 ///< beginning of the answer in the prompt
  std::shared_ptr<const Parser> otherwise = nullptr;  ///< for texts that this one cannot parse; null: none

  /// The message of a text, without the part in the prompt. Empty: the text does not have the format, or is too long.
  /// REQUIRES: UTF-8.
  std::optional<Message> parse(std::string_view text, Extent extent) const;
};

/// Format of the answers to a prompt, from llama.cpp. `continued`: the prompt ends with the beginning of the answer.
AnswerFormat format_of(const common_chat_params& params, common_reasoning_format reasoning, bool continued);

/// Answers in either of two formats of the same prompt; the first one if it fits.
AnswerFormat either_of(AnswerFormat first, const AnswerFormat& second);

}  // namespace winnow::chat
