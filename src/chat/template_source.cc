// SPDX-License-Identifier: Apache-2.0
#include "chat/template_source.h"

#include <exception>

#include "chat/own_format.h"

namespace winnow::chat {

namespace {

common_chat_templates_inputs question() {
  common_chat_templates_inputs out;
  out.messages.emplace_back();
  out.messages.back().role = "user";
  out.messages.back().content = "Who?";
  return out;
}

/// Templates are written for transformers, in which `tools` is none without tools. A few require the variable to be
/// undefined.
std::map<std::string, std::string> without_tools(const common_chat_templates* templates) {
  auto inputs = question();
  inputs.force_pure_content = true;
  inputs.chat_template_kwargs = {{"tools", "null"}};
  try {
    common_chat_templates_apply(templates, inputs);
  } catch (const std::exception&) {
    return {};
  }
  return inputs.chat_template_kwargs;
}

bool can_call(const common_chat_templates* templates, common_chat_templates_inputs inputs) {
  constexpr const char* kName = "a_function_to_be_told";
  inputs.tools = {{kName, "What it does.", R"({"type": "object", "properties": {}})"}};
  inputs.tool_choice = COMMON_CHAT_TOOL_CHOICE_REQUIRED;
  try {
    const auto params = common_chat_templates_apply(templates, inputs);
    return !params.grammar.empty() && params.prompt.find(kName) != std::string::npos;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

Source read_source(const std::string& source, const std::string& bos, const std::string& eos) {
  Source out{common_chat_templates_init(nullptr, source, bos, eos), {}};
  out.without_tools = without_tools(out.templates.get());
  return out;
}

bool has_calls(const common_chat_templates* templates) {
  auto can = common_chat_templates_get_caps(templates);
  if (!can["supports_tools"] && !can["supports_tool_calls"]) return false;
  auto ruled = question();  // some templates render tools only with a system message
  ruled.messages.insert(ruled.messages.begin(), ruled.messages.front());
  ruled.messages.front().role = "system";
  return can_call(templates, question()) || can_call(templates, ruled);
}

Taken taken_by(const Source& source) {
  auto can = common_chat_templates_get_caps(source.templates.get());
  return {
      .system = can["supports_system_role"] ? SystemRole::own_message : SystemRole::users_message,
      .contents = can["supports_string_content"] ? Contents::texts : Contents::parts,
      .no_tools = source.without_tools.empty() ? NoTools::undefined : NoTools::none,
  };
}

common_chat_params applied(const Source& source, const common_chat_templates_inputs& inputs) {
  const bool has_plain_calls =
      source.calls == Format::plain && !inputs.tools.empty() && inputs.tool_choice != COMMON_CHAT_TOOL_CHOICE_NONE;
  auto told = inputs;
  if (has_plain_calls) told.tool_choice = COMMON_CHAT_TOOL_CHOICE_NONE;
  auto params = common_chat_templates_apply(source.templates.get(), told);
  if (has_plain_calls) {
    put_plain_calls(params, inputs);
  } else if (!inputs.json_schema.empty() && params.grammar.empty()) {
    put_schema(params, inputs);
  }
  return params;
}

common_chat_params applied_without_tools(const Source& source, common_chat_templates_inputs inputs,
                                         const common_chat_params& of_calls) {
  inputs.tools.clear();
  inputs.tool_choice = COMMON_CHAT_TOOL_CHOICE_AUTO;
  inputs.chat_template_kwargs.insert(source.without_tools.begin(), source.without_tools.end());
  auto out = applied(source, inputs);
  if (out.generation_prompt == of_calls.generation_prompt) return out;
  out = of_calls;
  put_schema(out, inputs);
  return out;
}

}  // namespace winnow::chat
