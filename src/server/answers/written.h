// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "chat/answer_format.h"
#include "server/answers/conversation.h"
#include "winnow/generate.h"
#include "winnow/model.h"

namespace winnow::server {

/// A prompt with the ends of its text's stages (see Request); empty if it has none.
struct StagedPrompt {
  Prompt prompt;
  std::vector<std::size_t> stages = {};

  std::size_t size() const { return prompt.text.size() + prompt.question.size(); }
};

/// A conversation formatted for the model.
struct WrittenConversation {
  std::string text;
  /// The question is the last text of the last user message, with everything after it. A stage ends wherever the
  /// question would begin if the conversation ended with an earlier user message.
  StagedPrompt prompt;
  chat::AnswerFormat answer;
  std::set<std::string> left_out = {};  ///< keywords of schemas that the answer's grammar does not enforce
};

/// Formats a conversation by the model's chat template. Throws FieldError if the template does not support it.
WrittenConversation write(const Model& model, const AskedConversation& asked, ControlTokens control);

}  // namespace winnow::server
