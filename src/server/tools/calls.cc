// SPDX-License-Identifier: Apache-2.0
#include "server/tools/calls.h"

#include <spdlog/fmt/fmt.h>

#include <sstream>

#include "base/json.h"
#include "server/openai/answer.h"
#include "server/openai/errors.h"

namespace winnow::server {

namespace {

/// One line of an answer; false: it is cut off.
bool read_line(const std::string& line, std::vector<ToolCall>& to) {
  const Json call = Json::parse(line, nullptr, false);
  if (!call.is_object() || !call.contains("name") || !call.contains("arguments")) return false;
  to.push_back({.name = call.at("name").get<std::string>(), .arguments = text_of(call.at("arguments"))});
  return true;
}

/// A call's arguments, which are a text of JSON.
Json arguments_in(Fields& function) {
  const auto text = function.text("arguments");
  try {
    return parse_json<Json>(text.value_or("{}"));
  } catch (const JsonError& error) {
    throw FieldError(function.path("arguments"),
                     fmt::format("{} cannot be read: {}", function.path("arguments"), error.what()));
  }
}

/// A line break within a call is white space, so a call may have several lines.
std::vector<ToolCall> calls_in(const std::string& text) {
  std::vector<ToolCall> out;
  std::string call;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    call += line + "\n";
    if (read_line(call, out)) call.clear();
  }
  return out;
}

}  // namespace

Message message_of_answer(const std::string& text, AnswerExtent extent) {
  Message out{.role = Role::assistant, .content = {}};
  const bool begins_call = text.starts_with('{');
  if (begins_call && extent == AnswerExtent::whole) out.calls = calls_in(text);
  if (!begins_call || (extent == AnswerExtent::whole && out.calls.empty())) out.content = text;
  return out;
}

std::string read_calls(const RequestJson& calls, const std::string& path) {
  std::string out;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const std::string place = fmt::format("{}[{}]", path, i);
    Fields fields(object_at(calls[i], place), place + ".");
    Fields inner(fields.required_object("function"), fields.path("function."));
    const Json call{{"name", inner.required_text("name")}, {"arguments", arguments_in(inner)}};
    out += (out.empty() ? "" : "\n") + text_of(call);
  }
  return out;
}

}  // namespace winnow::server
