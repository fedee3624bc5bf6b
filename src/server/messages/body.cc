// SPDX-License-Identifier: Apache-2.0
#include "server/messages/body.h"

#include <spdlog/fmt/fmt.h>

#include <utility>

#include "base/printable.h"
#include "server/answers/conversation.h"
#include "server/openai/answer.h"
#include "server/openai/errors.h"
#include "server/openai/generation_fields.h"
#include "server/openai/missing_fields.h"
#include "server/openai/response_format.h"

namespace winnow::server {

namespace {

constexpr const char* kThoseRead = "winnow supports text, thinking, tool_use and tool_result";

[[noreturn]] void refuse_block(Fields& block, const std::string& type) {
  throw FieldError(block.path("type"), fmt::format("{} is {}: {}", block.path("type"), brief(type), kThoseRead));
}

/// Calls `read` with the fields and the type of each block. A plain text counts as one block.
template <class Read>
void read_blocks(const Json& content, const std::string& path, const Read& read) {
  if (content.is_string()) {
    const Json block{{"type", "text"}, {"text", content}};
    Fields fields(block, path + "[0].");
    return read(fields, "text");
  }
  if (!content.is_array()) throw FieldError(path, path + " must be a string, or a list of blocks");
  for (std::size_t i = 0; i < content.size(); ++i) {
    const std::string place = fmt::format("{}[{}]", path, i);
    Fields fields(object_at(content[i], place), place + ".");
    read(fields, fields.required_text("type"));
  }
}

/// The texts of a list of blocks, which must all be text.
std::vector<std::string> read_texts(const Json& content, const std::string& path) {
  std::vector<std::string> out;
  read_blocks(content, path, [&out](Fields& block, const std::string& type) {
    if (type != "text") refuse_block(block, type);
    out.push_back(block.required_text("text"));
  });
  return out;
}

/// True for a block with billing data, which a client changes with each request: left in, it would keep prompts from
/// sharing a prefix.
bool is_billing_header(const std::string& text) {
  return text.starts_with("x-anthropic-billing-header:") && text.find_first_of('\n') >= text.find_last_not_of('\n');
}

void read_system(Fields& fields, std::vector<AskedMessage>& to) {
  const Json* const system = fields.any("system");
  if (system == nullptr) return;
  auto texts = read_texts(*system, fields.path("system"));
  std::erase_if(texts, is_billing_header);
  if (!texts.empty()) to.push_back(message_of_parts(Role::system, texts));
}

AskedMessage read_tool_result(Fields& block) {
  const Json* const content = block.any("content");
  AskedMessage out = message_of_parts(
      Role::tool, content == nullptr ? std::vector<std::string>() : read_texts(*content, block.path("content")));
  out.question = 0;
  out.said.call_id = block.required_text("tool_use_id");
  if (block.is_set("is_error")) out.said.content.insert(0, "Error: ");
  return out;
}

/// Reads a user message. Tool results become separate messages.
void read_user_turn(const Json& content, const std::string& path, std::vector<AskedMessage>& to) {
  std::vector<std::string> parts;
  const auto end_message = [&] {
    if (!parts.empty()) to.push_back(message_of_parts(Role::user, std::exchange(parts, {})));
  };
  read_blocks(content, path, [&](Fields& block, const std::string& type) {
    if (type == "text") {
      parts.push_back(block.required_text("text"));
    } else if (type == "tool_result") {
      end_message();
      to.push_back(read_tool_result(block));
    } else {
      refuse_block(block, type);
    }
  });
  end_message();
}

/// Reads an assistant message. Leaves out encrypted thinking, which cannot be read.
AskedMessage read_assistant_turn(const Json& content, const std::string& path) {
  AskedMessage out{.said = {.role = Role::assistant, .content = {}}};
  Message& said = out.said;
  read_blocks(content, path, [&](Fields& block, const std::string& type) {
    if (type == "text") {
      said.content += (said.content.empty() ? "" : "\n") + block.required_text("text");
    } else if (type == "thinking") {
      said.reasoning += block.required_text("thinking");
    } else if (type == "tool_use") {
      said.calls.push_back({block.required_text("id"), read_tool_name(block), text_of(block.required_object("input"))});
    } else if (type != "redacted_thinking") {
      refuse_block(block, type);
    }
  });
  return out;
}

void read_turn(Fields& fields, std::vector<AskedMessage>& to) {
  const auto role = fields.word("role", {"user", "assistant", "system"});
  if (!role) throw FieldError(fields.path("role"), fields.path("role") + " is missing: give a role");
  const Json* const content = fields.any("content");
  const std::string place = fields.path("content");
  if (content == nullptr) throw FieldError(place, place + " is missing");
  if (*role == "user") return read_user_turn(*content, place, to);
  if (*role == "assistant") return to.push_back(read_assistant_turn(*content, place));
  to.push_back(message_of_parts(Role::system, read_texts(*content, place)));
}

void read_turns(Fields& fields, std::vector<AskedMessage>& to) {
  const Json* const list = fields.list("messages");
  if (list == nullptr || list->empty()) throw FieldError("messages", "messages are missing: give at least one");
  fields.each("messages", [&to](Fields& turn) { read_turn(turn, to); });
}

/// Reads the client's tools. Leaves out those that Anthropic's servers run.
void read_messages_tools(Fields& fields, AskedConversation& to) {
  fields.each("tools", [&to](Fields& tool) {
    if (leaves_out(tool.text("type").value_or("custom"), "custom", to)) return;
    tool.required_object("input_schema");
    to.tools.push_back(
        {read_tool_name(tool), tool.text("description").value_or(""), read_object_schema(tool, "input_schema")});
  });
}

AskedToolChoice read_messages_choice(Fields& fields) {
  using Kind = AskedToolChoice::Kind;
  AskedToolChoice out{.path = "tool_choice.name"};
  const Json* const choice = fields.object("tool_choice");
  if (choice == nullptr) return out;
  Fields inner(*choice, "tool_choice.");
  const auto type = inner.word("type", {"auto", "any", "tool", "none"});
  if (!type) throw FieldError("tool_choice.type", "tool_choice.type is missing: give auto, any, tool or none");
  out.may_be_several = !inner.is_set("disable_parallel_tool_use");
  if (*type == "any") out.kind = Kind::required;
  if (*type == "none") out.kind = Kind::none;
  if (*type == "tool") {
    out.kind = Kind::named;
    out.name = read_tool_name(inner);
  }
  return out;
}

/// Reads whether the model thinks before it answers.
AskedThinking read_thinking(Fields& fields) {
  const Json* const thinking = fields.object("thinking");
  if (thinking == nullptr) return {};
  Fields inner(*thinking, "thinking.");
  const std::string type = inner.required_text("type");
  AskedThinking out{.wanted = type == "disabled" ? chat::Thinking::off : chat::Thinking::on};
  if (const auto budget = inner.integer("budget_tokens", 0, std::numeric_limits<int>::max()))
    out.budget = static_cast<int>(*budget);
  return out;
}

std::vector<std::string> read_stop_sequences(Fields& fields) {
  std::vector<std::string> out;
  const Json* const list = fields.list("stop_sequences");
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i)
    out.push_back(text_at((*list)[i], fmt::format("stop_sequences[{}]", i)));
  std::erase(out, "");
  return out;
}

/// Reads the output format from its field or, as the API first had it, from a field of its own, and the effort.
void read_output(Fields& fields, AskedConversation& to) {
  to.format = read_format(fields, "output_format");
  const Json* const config = fields.object("output_config");
  if (config == nullptr) return;
  Fields inner(*config, "output_config.");
  if (auto format = read_format(inner, "format"); !format.schema.empty()) to.format = std::move(format);
  ask_for_effort(inner.text("effort"), to);
}

/// Continues a last assistant message that consists of text only.
chat::Ending ending_of(const Message& last) {
  const bool is_begun = last.role == Role::assistant && last.calls.empty() && !last.content.empty();
  return is_begun ? chat::Ending::continued : chat::Ending::answer;
}

}  // namespace

AskedConversation read_messages_conversation(Fields& fields) {
  AskedConversation out;
  read_system(fields, out.messages);
  read_turns(fields, out.messages);
  read_messages_tools(fields, out);
  out.choice = read_messages_choice(fields);
  out.thinking = read_thinking(fields);
  read_output(fields, out);
  out.ending = ending_of(out.messages.back().said);
  choose_tools(out);
  return out;
}

AnswerRequest read_messages_body(Fields& fields, const RequestTerms& terms) {
  AnswerRequest out;
  out.form.stream = fields.is_set("stream");
  read_sharing(fields, out.form);
  out.generate = read_generation(fields, out.form, terms.defaults, terms.model.info());
  if (auto stops = read_stop_sequences(fields); !stops.empty()) out.generate.stop = std::move(stops);
  out.asked = read_messages_conversation(fields);
  read_without_effect(fields);
  return out;
}

}  // namespace winnow::server
