// SPDX-License-Identifier: Apache-2.0
#include "chat/own_format.h"

#include <chat-peg-parser.h>
#include <json-schema-to-grammar.h>

namespace winnow::chat {

namespace {

using Builder = common_chat_peg_builder;

/// End of the prompt, and thinking in the template's tags.
common_peg_parser opening(Builder& p, const common_chat_params& params, const common_chat_templates_inputs& inputs) {
  const auto& start = params.thinking_start_tag;
  auto thought = p.eps();
  if (!start.empty() && !params.thinking_end_tags.empty() && inputs.reasoning_format != COMMON_REASONING_FORMAT_NONE) {
    const auto& end = params.thinking_end_tags.front();
    thought = p.optional(p.literal(start) + p.reasoning(p.until(end)) + p.literal(end));
  }
  return p.prefix(params.generation_prompt, start) + p.space() + thought + p.space();
}

void put(common_chat_params& params, const common_peg_arena& parser) {
  params.format = COMMON_CHAT_FORMAT_PEG_NATIVE;
  params.parser = parser.save();
  params.grammar =
      build_grammar([&](const common_grammar_builder& builder) { parser.build_grammar(builder, params.grammar_lazy); });
}

}  // namespace

void put_schema(common_chat_params& params, const common_chat_templates_inputs& inputs) {
  params.grammar_lazy = false;
  put(params, build_chat_peg_parser([&](Builder& p) {
        const auto value = p.content(p.schema(p.json(), "answer", common_json::parse(inputs.json_schema)));
        return opening(p, params, inputs) + value + p.space() + p.end();
      }));
}

void put_plain_calls(common_chat_params& params, const common_chat_templates_inputs& inputs) {
  constexpr const char* kStart = "<tool_call>\n";
  const bool are_required = inputs.tool_choice == COMMON_CHAT_TOOL_CHOICE_REQUIRED;
  params.grammar_lazy = !are_required;
  params.grammar_triggers = {{COMMON_GRAMMAR_TRIGGER_TYPE_WORD, kStart}};
  put(params, build_chat_peg_parser([&](Builder& p) {
        const auto tools = common_chat_tools_to_json_oaicompat(inputs.tools);
        const auto call = p.standard_json_tools(kStart, "</tool_call>", tools, false, true) + p.space();
        const auto calls = p.trigger_rule("tool-calls", inputs.parallel_tool_calls ? p.one_or_more(call) : call);
        const auto answer = are_required ? calls : p.content(p.until(kStart)) + p.optional(calls);
        return opening(p, params, inputs) + answer + p.end();
      }));
}

}  // namespace winnow::chat
