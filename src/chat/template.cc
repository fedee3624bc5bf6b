// SPDX-License-Identifier: Apache-2.0
#include "chat/template.h"

#include <chat.h>
#include <json-schema.h>
#include <log.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <exception>
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
#include "chat/template_source.h"

namespace winnow::chat {

namespace {

common_chat_tool_choice choice_of(ToolChoice choice) {
  if (choice == ToolChoice::required) return COMMON_CHAT_TOOL_CHOICE_REQUIRED;
  return choice == ToolChoice::none ? COMMON_CHAT_TOOL_CHOICE_NONE : COMMON_CHAT_TOOL_CHOICE_AUTO;
}

/// The content of an answer with a schema has no thinking in it.
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
  // Calls without arguments are common for functions without parameters, but templates parse the arguments as JSON.
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

/// Rejects input that the library would not survive, and variables that replace the template's own.
void check_input(const std::string& name, const Input& input) {
  constexpr std::array<std::string_view, 5> kOwn{"messages", "tools", "bos_token", "eos_token",
                                                 "add_generation_prompt"};
  for (const auto& [variable, value] : input.variables) {
    if (std::ranges::find(kOwn, variable) != kOwn.end())
      throw TemplateError(fmt::format("{}: {} is the chat template's own variable and cannot be set", name, variable));
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

/// The text with its origins. In a continued prompt, the last message follows the rendering.
model::MarkedText marked(const jinja::string& rendering, const std::string& prompt, const Input& input) {
  model::MarkedText out;
  for (const auto& part : rendering.parts) part.is_input ? out.append_input(part.val) : out.append_template(part.val);
  if (!prompt.starts_with(out.text)) throw TemplateError("the prompt differs from what the chat template rendered");
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

/// True if a template is run with tools, or with messages about them.
bool has_tools(const Input& input) {
  return !input.tools.empty() || std::ranges::any_of(input.messages, [](const Message& message) {
    return message.role == Role::tool || !message.calls.empty();
  });
}

bool tells_all(const Rendering& rendering, std::span<const Tool> tools) {
  return std::ranges::all_of(
      tools, [&](const Tool& tool) { return rendering.text.text.find(tool.name) != std::string::npos; });
}

}  // namespace

struct Template::Impl {
  std::string name;
  Source usual;
  std::optional<Source> tool_use = {};
  Source plain = {};  ///< the usual one with tools as text

  /// The template with its own format for the tools of an input; null: none.
  const Source* own_for(const Input& input) const {
    const Source& own = tool_use && !input.tools.empty() ? *tool_use : usual;
    return own.calls == Format::own || !has_tools(input) ? &own : nullptr;
  }

  Rendering render(const Source& source, const Input& input) const;
};

Template::Template(std::string name, const TemplateSources& sources, const std::string& bos, const std::string& eos)
    : impl_(std::make_unique<Impl>()) {
  impl_->name = std::move(name);
  // The library logs unparsable answers, and errors that it also throws.
  static const bool is_quiet = (common_log_set_verbosity_thold(-1), true);
  static_cast<void>(is_quiet);
  if (sources.usual.empty()) throw TemplateError(impl_->name + ": there is no chat template");
  const auto read = [&](const std::string& subject, const std::string& source) {
    Source out;
    bounded(subject, "be read", source.size(), [&] {
      check_nesting(impl_->name, source);
      out = read_source(source, bos, eos);
    });
    return out;
  };
  const auto read_own = [&](const std::string& subject, const std::string& source) {
    auto out = read(subject, source);
    bounded(subject, "be run", source.size(), [&] {
      if (has_calls(out.templates.get())) out.calls = Format::own;
    });
    return out;
  };
  const std::string subject = impl_->name + ": the chat template";
  impl_->usual = read_own(subject, sources.usual);
  if (!sources.tool_use.empty()) impl_->tool_use = read_own(subject + " of tools", sources.tool_use);
  impl_->plain = read(subject, with_plain_tools(sources.usual, taken_by(impl_->usual)));
  impl_->plain.calls = Format::plain;
}

Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;
Template::~Template() = default;

Rendering Template::Impl::render(const Source& source, const Input& input) const {
  std::vector<jinja::string> renderings;
  auto inputs = inputs_of(input);
  inputs.renderings = &renderings;
  if (input.tools.empty()) inputs.chat_template_kwargs.insert(source.without_tools.begin(), source.without_tools.end());
  const bool may_call = !input.tools.empty() && input.tool_choice != ToolChoice::none;
  const bool is_either = may_call && input.tool_choice == ToolChoice::automatic && !input.schema.empty();
  if (is_either) inputs.tool_choice = COMMON_CHAT_TOOL_CHOICE_REQUIRED;
  Rendering out;
  common_chat_params params;
  bounded(name + ": the chat template", "be run", size_of(input), [&] {
    const common_chat_schema_lenient lenient(out.left_out);
    const auto format = [&](const common_chat_params& of) {
      return format_of(of, inputs.reasoning_format, input.ending == Ending::continued);
    };
    if (!input.schema.empty() && !may_call) inputs.json_schema = object_schema(input.schema);
    params = applied(source, inputs);
    out.answer = format(params);
    if (!is_either) return;
    inputs.json_schema = object_schema(input.schema);
    out.answer = either_of(std::move(out.answer), format(applied_without_tools(source, inputs, params)));
  });
  if (renderings.empty()) throw TemplateError(name + ": the chat template rendered nothing");
  out.text = marked(renderings.front(), params.prompt, input);
  out.messages = places_of(input.messages, out.text);
  return out;
}

Rendering Template::render(const Input& input) const {
  check_input(impl_->name, input);
  const Source* const own = impl_->own_for(input);
  if (own != nullptr && input.tools.empty()) return impl_->render(*own, input);
  std::exception_ptr refusal;
  if (own != nullptr) {
    try {
      auto out = impl_->render(*own, input);
      if (tells_all(out, input.tools)) return out;
    } catch (const TemplateError&) {
      refusal = std::current_exception();
    }
  }
  try {
    return impl_->render(impl_->plain, input);
  } catch (const TemplateError&) {
    if (refusal) std::rethrow_exception(refusal);
    throw;
  }
}

}  // namespace winnow::chat
