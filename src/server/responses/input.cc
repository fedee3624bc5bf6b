// SPDX-License-Identifier: Apache-2.0
#include "server/responses/input.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "base/printable.h"
#include "server/openai/errors.h"

namespace winnow::server {

namespace {

constexpr const char* kInput = "input";

/// Texts of a content or an output: a text, or a list of parts of the given types.
std::vector<std::string> read_text_parts(Fields& fields, const char* name, const std::vector<std::string>& kinds) {
  const Json* const content = fields.any(name);
  const std::string path = fields.path(name);
  if (content == nullptr) throw FieldError(path, path + " is missing");
  if (content->is_string()) return {content->get<std::string>()};
  if (!content->is_array()) throw FieldError(path, path + " must be a string, or a list of parts");
  std::vector<std::string> out;
  for (std::size_t i = 0; i < content->size(); ++i) {
    const std::string place = fmt::format("{}[{}]", path, i);
    Fields part(object_at((*content)[i], place), place + ".");
    const std::string type = part.required_text("type");
    if (std::ranges::count(kinds, type) == 0)
      throw FieldError(part.path("type"), fmt::format("{} is {}: winnow supports {}", part.path("type"), brief(type),
                                                      fmt::join(kinds, ", ")));
    out.push_back(part.required_text(type == "refusal" ? "refusal" : "text"));
  }
  return out;
}

/// Joins items: one assistant message has its reasoning, text and calls.
class InputReader {
 public:
  explicit InputReader(std::vector<std::string>& left_out) : left_out_(left_out) {}

  void read(Fields& item) {
    const auto type = item.text("type").value_or("message");
    if (type == "message") return read_message(item);
    if (type == "reasoning") return read_reasoning(item);
    if (type == "function_call") return read_call(item);
    if (type == "function_call_output") return read_output(item);
    if (type == "item_reference")
      throw FieldError(item.path("type"),
                       item.path("type") + " is item_reference: items are not stored, so send the item itself");
    left_out_.push_back(fmt::format("input of the type {} is not supported, and is ignored", brief(type)));
  }

  std::vector<AskedMessage> messages;

 private:
  void read_message(Fields& item) {
    const auto role = item.word("role", {"user", "assistant", "system", "developer"});
    if (!role) throw FieldError(item.path("role"), item.path("role") + " is missing: give a role");
    const auto texts = read_text_parts(item, "content", {"input_text", "output_text", "text", "refusal"});
    if (*role != "assistant")
      return messages.push_back(message_of_parts(*role == "user" ? Role::user : Role::system, texts));
    Message& to = of_assistant();
    for (const auto& text : texts) to.content += (to.content.empty() ? "" : "\n") + text;
  }

  /// Adds the reasoning, or else its summary. Encrypted reasoning cannot be read.
  void read_reasoning(Fields& item) {
    for (const char* const name : {"content", "summary"}) {
      const Json* const list = item.list(name);
      if (list == nullptr || list->empty()) continue;
      for (const auto& text : read_text_parts(item, name, {"reasoning_text", "summary_text"}))
        of_assistant().reasoning += text;
      return;
    }
  }

  void read_call(Fields& item) {
    of_assistant().calls.push_back({item.required_text("call_id"), read_tool_name(item),
                                    checked_arguments(item.required_text("arguments"), item.path("arguments"))});
  }

  void read_output(Fields& item) {
    AskedMessage out = message_of_parts(Role::tool, read_text_parts(item, "output", {"input_text", "output_text"}));
    out.question = 0;
    out.said.call_id = item.required_text("call_id");
    messages.push_back(std::move(out));
  }

  Message& of_assistant() {
    if (messages.empty() || messages.back().said.role != Role::assistant)
      messages.push_back({.said = {.role = Role::assistant, .content = {}}});
    return messages.back().said;
  }

  std::vector<std::string>& left_out_;
};

}  // namespace

std::vector<AskedMessage> read_input(Fields& fields, std::vector<std::string>& left_out) {
  InputReader reader(left_out);
  if (const auto text = fields.text("instructions")) reader.messages.push_back(message_of_parts(Role::system, {*text}));
  const Json* const input = fields.any(kInput);
  if (input == nullptr) throw FieldError(kInput, "input is missing: give a string, or a list of items");
  if (input->is_string()) {
    reader.messages.push_back(message_of_parts(Role::user, {input->get<std::string>()}));
    return std::move(reader.messages);
  }
  fields.each(kInput, [&reader](Fields& item) { reader.read(item); });
  if (reader.messages.empty()) throw FieldError(kInput, "input has no message to answer");
  return std::move(reader.messages);
}

}  // namespace winnow::server
