// SPDX-License-Identifier: Apache-2.0
#include "chat/template.h"

#include <chat-peg-parser.h>
#include <chat.h>
#include <json-schema-to-grammar.h>
#include <json-schema.h>
#include <log.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "chat/answer_parser.h"
#include "chat/bounds.h"
#include "chat/nesting.h"
#include "chat/placement.h"
#include "chat/plain_tools.h"
#include "chat/schema.h"

namespace winnow::chat {

namespace {

common_chat_tool_choice choice_of(ToolChoice choice) {
  if (choice == ToolChoice::required) return COMMON_CHAT_TOOL_CHOICE_REQUIRED;
  return choice == ToolChoice::none ? COMMON_CHAT_TOOL_CHOICE_NONE : COMMON_CHAT_TOOL_CHOICE_AUTO;
}

/// A content that has a schema has no thinking in it.
common_reasoning_format reasoning_of(const Input& input) {
  const bool is_apart = input.reasoning == Reasoning::apart || !input.schema.empty();
  return is_apart ? COMMON_REASONING_FORMAT_AUTO : COMMON_REASONING_FORMAT_NONE;
}

common_chat_msg said_of(const Message& message) {
  common_chat_msg out;
  out.role = name_of(message.role);
  out.content = message.content;
  out.reasoning_content = message.reasoning;
  out.tool_call_id = message.call_id;
  out.tool_name = message.tool_name;
  // Calls of functions without parameters often come back without arguments, which templates read as JSON.
  for (const auto& call : message.calls)
    out.tool_calls.push_back({call.name, call.arguments.empty() ? "{}" : call.arguments, call.id});
  return out;
}

common_chat_templates_inputs inputs_of(const Input& input) {
  common_chat_templates_inputs out;
  for (const auto& message : input.messages) out.messages.push_back(said_of(message));
  for (const auto& tool : input.tools) out.tools.push_back({tool.name, tool.description, tool.parameters});
  out.tool_choice = choice_of(input.tool_choice);
  out.add_generation_prompt = input.ending == Ending::answer;
  if (input.ending == Ending::continued) out.continue_final_message = COMMON_CHAT_CONTINUATION_AUTO;
  out.enable_thinking = input.thinking == Thinking::on;
  out.chat_template_kwargs = input.variables;
  out.parallel_tool_calls = input.calls == Calls::parallel;
  out.reasoning_format = reasoning_of(input);
  return out;
}

/// Refuses what the library would not survive, and values that take the place of the template's own.
void check_input(const std::string& name, const Input& input) {
  constexpr std::array<std::string_view, 5> kOwn{"messages", "tools", "bos_token", "eos_token",
                                                 "add_generation_prompt"};
  for (const auto& [variable, value] : input.variables) {
    if (std::ranges::find(kOwn, variable) != kOwn.end())
      throw TemplateError(fmt::format("{}: {} is no variable of one's own", name, variable));
    check_json(fmt::format("the chat template's variable {}", variable), value);
  }
  if (!input.schema.empty()) check_schema("the schema of the answer", input.schema);
  for (const auto& tool : input.tools)
    check_schema(fmt::format("the schema of the function {}", tool.name), tool.parameters);
  for (const auto& message : input.messages) {
    for (const auto& call : message.calls)
      check_json(fmt::format("a call of the function {}", call.name), call.arguments);
  }
}

std::size_t size_of(const Input& input) {
  std::size_t size = 0;
  for (const auto& [variable, value] : input.variables) size += variable.size() + value.size();
  for (const auto& tool : input.tools) size += tool.name.size() + tool.description.size() + tool.parameters.size();
  for (const auto& message : input.messages) {
    size += message.content.size() + message.reasoning.size();
    for (const auto& call : message.calls) size += call.name.size() + call.arguments.size();
  }
  return size;
}

/// The text with its origins. What follows the rendering in the prompt is the last message, which is continued.
model::MarkedText marked(const jinja::string& rendering, const std::string& prompt, const Input& input) {
  model::MarkedText out;
  for (const auto& part : rendering.parts) part.is_input ? out.append_input(part.val) : out.append_template(part.val);
  if (!prompt.starts_with(out.text)) throw TemplateError("the prompt is not what the chat template has written");
  const std::string_view rest = std::string_view(prompt).substr(out.text.size());
  const std::string_view said = input.messages.empty() ? std::string_view() : input.messages.back().content;
  if (!rest.empty() && rest.ends_with(said)) {
    out.append_template(rest.substr(0, rest.size() - said.size()));
    out.append_input(said);
  } else {
    out.append_template(rest);
  }
  return out;
}

}  // namespace

namespace {

/// A template that has been read, and the variables that it is run with where there are no tools.
struct Source {
  common_chat_templates_ptr templates;
  std::map<std::string, std::string> without_tools;
};

common_chat_templates_inputs question() {
  common_chat_templates_inputs out;
  out.messages.emplace_back();
  out.messages.back().role = "user";
  out.messages.back().content = "Who?";
  return out;
}

/// Templates are written for transformers, which has `tools` none where there are none. A few can only be run where
/// the variable is not there.
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

/// Whether calls can be asked for, and read. Some templates tell tools, but write no calls that one could learn from.
bool has_calls(const common_chat_templates* templates) {
  auto can = common_chat_templates_get_caps(templates);
  if (!can["supports_tools"] && !can["supports_tool_calls"]) return false;
  auto inputs = question();
  inputs.tools = {{"function", "What it does.", R"({"type": "object", "properties": {}})"}};
  inputs.tool_choice = COMMON_CHAT_TOOL_CHOICE_REQUIRED;
  try {
    return !common_chat_templates_apply(templates, inputs).grammar.empty();
  } catch (const std::exception&) {
    return false;
  }
}

Source read_source(const std::string& source, const std::string& bos, const std::string& eos) {
  Source out{common_chat_templates_init(nullptr, source, bos, eos), {}};
  out.without_tools = without_tools(out.templates.get());
  return out;
}

/// Makes answers be of a schema, after thinking in tags, where llama.cpp's format for a template has none of it.
void put_schema(common_chat_params& params, const std::string& schema) {
  const auto parser = build_chat_peg_parser([&](common_chat_peg_builder& p) {
    auto thought = p.eps();
    const auto& start = params.thinking_start_tag;
    if (!start.empty() && !params.thinking_end_tags.empty()) {
      const auto& end = params.thinking_end_tags.front();
      thought = p.optional(p.literal(start) + p.reasoning(p.until(end)) + p.literal(end));
    }
    const auto value = p.content(p.schema(p.json(), "answer", common_json::parse(schema)));
    return p.prefix(params.generation_prompt, start) + p.space() + thought + p.space() + value + p.space() + p.end();
  });
  params.format = COMMON_CHAT_FORMAT_PEG_NATIVE;
  params.parser = parser.save();
  params.grammar = build_grammar([&](const common_grammar_builder& builder) { parser.build_grammar(builder, false); });
  params.grammar_lazy = false;
}

/// Whether a template is run with tools, or with messages that are about them.
bool has_tools(const Input& input) {
  return !input.tools.empty() || std::ranges::any_of(input.messages, [](const Message& message) {
    return message.role == Role::tool || !message.calls.empty();
  });
}

}  // namespace

struct Template::Impl {
  std::string name;
  Source own;
  std::optional<Source> with_tools;  ///< none: the template has calls of its own

  const Source& source_for(const Input& input) const {
    return with_tools.has_value() && has_tools(input) ? *with_tools : own;
  }
};

Template::Template(std::string name, const std::string& source, const std::string& bos, const std::string& eos)
    : impl_(std::make_unique<Impl>()) {
  impl_->name = std::move(name);
  // The library logs answers that it cannot read, and errors that are thrown as well.
  static const bool is_quiet = (common_log_set_verbosity_thold(-1), true);
  static_cast<void>(is_quiet);
  if (source.empty()) throw TemplateError(impl_->name + ": there is no chat template");
  bounded(impl_->name + ": the chat template", "be read", source.size(), [&] {
    check_nesting(impl_->name, source);
    impl_->own = read_source(source, bos, eos);
    if (has_calls(impl_->own.templates.get())) return;
    auto can = common_chat_templates_get_caps(impl_->own.templates.get());
    const Taken taken{
        .system = can["supports_system_role"] ? SystemRole::own_message : SystemRole::users_message,
        .contents = can["supports_string_content"] ? Contents::texts : Contents::parts,
        .no_tools = impl_->own.without_tools.empty() ? NoTools::undefined : NoTools::none,
    };
    impl_->with_tools = read_source(with_plain_tools(source, taken), bos, eos);
  });
}

Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;
Template::~Template() = default;

Rendering Template::render(const Input& input) const {
  std::vector<jinja::string> renderings;
  check_input(impl_->name, input);
  auto inputs = inputs_of(input);
  inputs.renderings = &renderings;
  common_chat_params params;
  Rendering out;
  bounded(impl_->name + ": the chat template", "be run", size_of(input), [&] {
    const common_chat_schema_lenient lenient(out.left_out);
    if (!input.schema.empty()) inputs.json_schema = object_schema(input.schema);
    const Source& source = impl_->source_for(input);
    if (input.tools.empty())
      inputs.chat_template_kwargs.insert(source.without_tools.begin(), source.without_tools.end());
    params = common_chat_templates_apply(source.templates.get(), inputs);
    if (!input.schema.empty() && params.grammar.empty()) put_schema(params, inputs.json_schema);
    out.answer = format_of(params, inputs.reasoning_format, input.ending == Ending::continued);
  });
  if (renderings.empty()) throw TemplateError(impl_->name + ": the chat template has written nothing");
  out.text = marked(renderings.front(), params.prompt, input);
  out.messages = places_of(input.messages, out.text);
  return out;
}

}  // namespace winnow::chat
