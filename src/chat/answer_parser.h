// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chat.h>

#include <memory>
#include <optional>
#include <string>

#include "chat/answer_format.h"

namespace winnow::chat {

enum class Extent : std::uint8_t { whole, partial };

/// llama.cpp's parser of answers to one prompt. Shared by threads.
struct AnswerFormat::Parser {
  common_chat_parser_params params;
  Message begun = {};                                 ///< what the prompt already has of the answer
  std::shared_ptr<const Parser> otherwise = nullptr;  ///< for texts that this one cannot read; null: none

  /// The message of a text without what the prompt has. None: the text is not of the format, or too long to be read.
  /// REQUIRES: UTF-8.
  std::optional<Message> parse(std::string_view text, Extent extent) const;
};

/// The format of the answers to a prompt, as llama.cpp has it. `continued`: the prompt has the beginning of the answer.
AnswerFormat format_of(const common_chat_params& params, common_reasoning_format reasoning, bool continued);

/// Answers of the one format or the other. Both are of the same prompt. A text is of the first if it can be.
AnswerFormat either_of(AnswerFormat first, const AnswerFormat& second);

}  // namespace winnow::chat
