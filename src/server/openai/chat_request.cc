// SPDX-License-Identifier: Apache-2.0
#include "server/openai/chat_request.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "engine/model_impl.h"
#include "server/openai/errors.h"
#include "server/tools/calls.h"

namespace winnow::server {

namespace {

constexpr const char* kMessages = "messages";

/// What a call has given: templates that know no tools put it as a message of the user.
bool is_result(const std::string& role) { return role == "tool" || role == "function"; }

Role role_of(Fields& fields) {
  const auto role = fields.word("role", {"system", "developer", "user", "assistant", "tool", "function"});
  if (!role) throw FieldError(fields.path("role"), fields.path("role") + " is missing: say who speaks");
  if (*role == "user" || is_result(*role)) return Role::user;
  return *role == "assistant" ? Role::assistant : Role::system;
}

/// A text of a list of parts. They stand on lines of their own.
std::string read_part(const RequestJson& value, const std::string& path) {
  Fields part(object_at(value, path), path + ".");
  const auto type = part.text("type");
  if (type.value_or("text") != "text")
    throw FieldError(part.path("type"), fmt::format("{} must be text: winnow reads nothing else", part.path("type")));
  return part.required_text("text");
}

std::vector<std::string> read_content(Fields& fields) {
  const RequestJson* const content = fields.any("content");
  if (content == nullptr) return {""};
  if (content->is_string()) return {content->get<std::string>()};
  if (!content->is_array() || content->empty())
    throw FieldError(fields.path("content"), fields.path("content") + " must be a string, or a list of parts");
  std::vector<std::string> out;
  for (std::size_t i = 0; i < content->size(); ++i)
    out.push_back(read_part((*content)[i], fmt::format("{}[{}]", fields.path("content"), i)));
  for (std::size_t i = 0; i + 1 < out.size(); ++i) out[i] += "\n";
  return out;
}

ChatMessage read_message(const RequestJson& value, const std::string& path) {
  Fields fields(object_at(value, path), path + ".");
  ChatMessage out{role_of(fields), read_content(fields)};
  if (is_result(fields.text("role").value_or(""))) out.parts.insert(out.parts.begin(), kResultOpening);
  if (fields.object("function_call") != nullptr)
    throw NotImplemented(fields.path("function_call"),
                         fields.path("function_call") + " is not implemented: give tool_calls");
  const RequestJson* const calls = fields.list("tool_calls");
  if (calls == nullptr || calls->empty()) return out;
  if (!out.parts.back().empty()) out.parts.back() += "\n";
  out.parts.back() += read_calls(*calls, fields.path("tool_calls"));
  return out;
}

ChatEnd read_end(Fields& fields, const std::vector<ChatMessage>& messages) {
  const auto opens = fields.boolean("add_generation_prompt");
  if (!fields.is_set("continue_final_message")) return opens.value_or(true) ? ChatEnd::answer : ChatEnd::nothing;
  if (opens.value_or(false))
    throw FieldError("continue_final_message", "continue_final_message does not go with add_generation_prompt");
  if (messages.back().role == Role::system)
    throw FieldError("continue_final_message", "the last message is the system's: nothing can go on with it");
  return ChatEnd::continued;
}

/// What the template puts around the messages; see Vocab::chat_frame().
std::vector<std::string> frame_of(const Model& model, const ChatPrompt& chat) {
  std::vector<Message> messages;
  for (const auto& message : chat.messages)
    messages.push_back({message.role, message.role == Role::system ? message.text() : ""});
  const auto opening = chat.end == ChatEnd::answer ? model::AnswerOpening::added : model::AnswerOpening::absent;
  try {
    auto frame = model.impl().vocab.chat_frame(messages, opening);
    if (chat.end == ChatEnd::continued) frame.back().clear();
    return frame;
  } catch (const model::LostMessageError& error) {
    throw FieldError(kMessages, error.what());
  } catch (const UsageError&) {
    throw FieldError(kMessages, model.impl().vocab.chat_template().empty()
                                    ? "the model has no chat template: use /v1/completions"
                                    : "the model's chat template cannot put these messages: use /v1/completions");
  }
}

void append(std::vector<Token>& to, const std::vector<Token>& more) { to.insert(to.end(), more.begin(), more.end()); }

/// Tokens of what a template puts between messages: a few texts, however many messages there are.
class TemplateTokens {
 public:
  explicit TemplateTokens(const model::Vocab& vocab) : vocab_(vocab) {}

  const std::vector<Token>& of(const std::string& text) {
    const auto [place, is_new] = known_.try_emplace(text);
    if (is_new) place->second = vocab_.tokenize(text, ControlTokens::parsed);
    return place->second;
  }

 private:
  const model::Vocab& vocab_;
  std::map<std::string, std::vector<Token>> known_;
};

/// Tokens of a chat as they are put together.
struct Parts {
  std::vector<Token> tokens;
  std::vector<std::size_t> questions;  ///< where the last text of each message of the user begins

  void begin_question() {
    if (tokens.size() > (questions.empty() ? 0 : questions.back())) questions.push_back(tokens.size());
  }
  StagedPrompt split() && {
    if (questions.empty()) return {{std::move(tokens), {}}};
    const auto at = tokens.begin() + static_cast<std::ptrdiff_t>(questions.back());
    return {{{tokens.begin(), at}, {at, tokens.end()}}, std::move(questions)};
  }
};

}  // namespace

std::string ChatMessage::text() const {
  std::string out;
  for (const auto& part : parts) out += part;
  return out;
}

const char* role_name(Role role) {
  return role == Role::user ? "user" : role == Role::assistant ? "assistant" : "system";
}

Role role_named(const std::string& name) {
  for (const auto role : {Role::user, Role::assistant, Role::system}) {
    if (name == role_name(role)) return role;
  }
  throw UsageError(fmt::format("there is no role {}", name));
}

std::size_t ChatPrompt::size() const {
  std::size_t out = 0;
  for (const auto& message : messages) out += message.text().size();
  return out;
}

ChatPrompt read_chat(Fields& fields) {
  const RequestJson* const list = fields.list(kMessages);
  if (list == nullptr || list->empty()) throw FieldError(kMessages, "messages are missing: give at least one");
  ChatPrompt out;
  for (std::size_t i = 0; i < list->size(); ++i)
    out.messages.push_back(read_message((*list)[i], fmt::format("messages[{}]", i)));
  out.end = read_end(fields, out.messages);
  return out;
}

void add_instructions(ChatPrompt& chat, const std::string& text) {
  if (chat.messages.front().role != Role::system) {
    chat.messages.insert(chat.messages.begin(), {Role::system, {text}});
  } else {
    chat.messages.front().parts.push_back("\n\n" + text);
  }
}

StagedPrompt tokenize(const Model& model, const ChatPrompt& chat, ControlTokens control) {
  const auto& vocab = model.impl().vocab;
  TemplateTokens between(vocab);
  const auto frame = frame_of(model, chat);
  Parts parts{vocab.opening(frame.front()), {}};
  auto after = frame.begin();
  for (const auto& message : chat.messages) {
    if (message.role == Role::system) continue;
    for (std::size_t i = 0; i < message.parts.size(); ++i) {
      if (message.role == Role::user && i + 1 == message.parts.size()) parts.begin_question();
      append(parts.tokens, vocab.tokenize(message.parts[i], control));
    }
    append(parts.tokens, between.of(*++after));
  }
  return std::move(parts).split();
}

std::string render(const Model& model, const ChatPrompt& chat) {
  const auto frame = frame_of(model, chat);
  auto after = frame.begin();
  std::string out = *after;
  for (const auto& message : chat.messages) {
    if (message.role != Role::system) out += message.text() + *++after;
  }
  return out;
}

}  // namespace winnow::server
