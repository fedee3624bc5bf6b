// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "server/answers/conversation.h"
#include "server/answers/plan.h"
#include "server/answers/reader.h"
#include "server/json.h"
#include "server/openai/completion_request.h"
#include "server/openai/fields.h"
#include "server/options.h"
#include "winnow/generate.h"
#include "winnow/model.h"

namespace winnow::server {

/// The model and the defaults for reading a body.
struct RequestTerms {
  const Model& model;
  const RequestDefaults& defaults;
  int context;  ///< tokens
};

/// Prompts to be continued.
struct PromptsRequest {
  std::vector<PromptSource> prompts;
  AskedFormat format = {};
};

/// A request for answers, independent of the API.
struct AnswerRequest {
  AnswerForm form;
  GenerateOptions generate = {};
  std::variant<AskedConversation, PromptsRequest> asked = {};
  Json repeated = {};  ///< AnswerPlan::repeated

  AskedConversation* conversation() { return std::get_if<AskedConversation>(&asked); }
  const AskedConversation* conversation() const { return std::get_if<AskedConversation>(&asked); }
};

}  // namespace winnow::server
