// SPDX-License-Identifier: Apache-2.0
#include "server/answers/written.h"

#include <algorithm>
#include <utility>

#include "engine/wording.h"
#include "server/openai/errors.h"

namespace winnow::server {

namespace {

chat::ToolChoice choice_of(AskedToolChoice::Kind kind) {
  using Kind = AskedToolChoice::Kind;
  if (kind == Kind::automatic) return chat::ToolChoice::automatic;
  return kind == Kind::none ? chat::ToolChoice::none : chat::ToolChoice::required;
}

Wording wording_of(const Model& model, const AskedConversation& asked, ControlTokens control) {
  std::vector<Message> messages;
  for (const auto& message : asked.messages) messages.push_back(message.said);
  chat::Input input;
  input.messages = messages;
  input.tools = asked.tools;
  input.tool_choice = choice_of(asked.choice.kind);
  input.calls = asked.choice.may_be_several ? chat::Calls::parallel : chat::Calls::one;
  input.ending = asked.ending;
  input.thinking = asked.thinking.wanted;
  input.reasoning = asked.thinking.reasoning;
  input.variables = asked.variables;
  input.schema = asked.format.schema;
  try {
    return winnow::write(model, input, control);
  } catch (const chat::TemplateError& error) {
    throw FieldError(asked.field, error.what());
  }
}

/// Offsets in bytes at which questions begin: the last text of each user message.
std::vector<std::size_t> questions_in(const AskedConversation& asked, const Wording& wording) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < asked.messages.size(); ++i) {
    const auto& [said, question] = asked.messages[i];
    if (said.role == Role::user) out.push_back(wording.begin_of_last(i, said.content.size() - question));
  }
  return out;
}

StagedPrompt split(std::vector<Token> tokens, std::vector<std::size_t> questions) {
  questions.erase(std::unique(questions.begin(), questions.end()), questions.end());
  std::erase(questions, std::size_t{0});
  if (questions.empty()) return {{std::move(tokens), {}}};
  const auto at = tokens.begin() + static_cast<std::ptrdiff_t>(questions.back());
  return {{{tokens.begin(), at}, {at, tokens.end()}}, std::move(questions)};
}

}  // namespace

WrittenConversation write(const Model& model, const AskedConversation& asked, ControlTokens control) {
  Wording wording = wording_of(model, asked, control);
  auto questions = questions_in(asked, wording);
  auto tokens = winnow::tokens_of(model, wording.text, questions);
  return {std::move(wording.text.text), split(std::move(tokens), std::move(questions)), std::move(wording.answer),
          std::move(wording.left_out)};
}

}  // namespace winnow::server
