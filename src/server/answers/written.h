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

/// A prompt, and where the stages of its text end (see Request); empty: it has none.
struct StagedPrompt {
  Prompt prompt;
  std::vector<std::size_t> stages = {};

  std::size_t size() const { return prompt.text.size() + prompt.question.size(); }
};

/// A conversation as the model reads it.
struct WrittenConversation {
  std::string text;
  /// The question is the last text of the last message of the user, and what follows it; a stage ends where the
  /// question began when an earlier message was the last one.
  StagedPrompt prompt;
  chat::AnswerFormat answer;
  std::set<std::string> left_out = {};  ///< keywords of schemas that the answer's grammar does not enforce
};

/// By the model's chat template. Throws FieldError where the template cannot write it.
WrittenConversation write(const Model& model, const AskedConversation& asked, ControlTokens control);

}  // namespace winnow::server
