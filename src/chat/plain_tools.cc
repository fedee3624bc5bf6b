// SPDX-License-Identifier: Apache-2.0
#include "chat/plain_tools.h"

#include <string_view>

namespace winnow::chat {

namespace {

constexpr std::string_view kTexts = R"({%- macro tools_as_text() -%}
{{- '# Tools\n\nYou may call one or more functions to assist with the user query.\n\nYou are provided with ' -}}
{{- 'function signatures within <tools></tools> XML tags:\n<tools>' -}}
{%- for tool in tools -%}{{- '\n' ~ (tool | tojson) -}}{%- endfor -%}
{{- '\n</tools>\n\nFor each function call, return a json object with function name and arguments within ' -}}
{{- '<tool_call></tool_call> XML tags:\n<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n' -}}
{{- '</tool_call>' -}}
{%- endmacro -%}
{%- macro calls_as_text(message) -%}
{{- message.content if message.content else '' -}}
{%- for call in message.tool_calls -%}
{{- '\n' if message.content or not loop.first else '' -}}
{{- '<tool_call>\n{"name": ' ~ (call.function.name | tojson) ~ ', "arguments": ' -}}
{{- call.function.arguments if call.function.arguments is string else (call.function.arguments | tojson) -}}
{{- '}\n</tool_call>' -}}
{%- endfor -%}
{%- endmacro -%}
)";

constexpr std::string_view kMessages = R"({%- set said = namespace(messages=[], result=false, ruled=not tools) -%}
{%- for message in messages -%}
{%- if message.role == 'tool' -%}
{%- set text = '<tool_response>\n' ~ message.content ~ '\n</tool_response>' -%}
{%- if said.result -%}
{%- set text = said.messages[-1].content ~ '\n' ~ text -%}
{%- set said.messages = said.messages[:-1] -%}
{%- endif -%}
{%- set said.messages = said.messages + [{'role': 'user', 'content': text}] -%}
{%- set said.result = true -%}
{%- else -%}
{%- set said.result = false -%}
{%- if message.tool_calls -%}
{%- set said.messages = said.messages + [{'role': 'assistant', 'content': calls_as_text(message)}] -%}
{%- elif message.role == rule_role and not said.ruled -%}
{%- set first = message.content if rule_role == 'system' else tools_as_text() -%}
{%- set text = first ~ '\n\n' ~ (tools_as_text() if rule_role == 'system' else message.content) -%}
{%- set said.messages = said.messages + [{'role': message.role, 'content': text}] -%}
{%- set said.ruled = true -%}
{%- else -%}
{%- set said.messages = said.messages + [message] -%}
{%- endif -%}
{%- endif -%}
{%- endfor -%}
{%- if not said.ruled -%}
{%- set said.messages = [{'role': rule_role, 'content': tools_as_text()}] + said.messages -%}
{%- endif -%}
{%- set messages = said.messages -%}
)";

constexpr std::string_view kParts = R"({%- set said.messages = [] -%}
{%- for message in messages -%}
{%- set parts = [{'type': 'text', 'text': message.content}] -%}
{%- set said.messages = said.messages + [{'role': message.role, 'content': parts}] -%}
{%- endfor -%}
{%- set messages = said.messages -%}
)";

}  // namespace

std::string with_plain_tools(const std::string& source, const Taken& taken) {
  std::string out(kTexts);
  const bool has_system = taken.system == SystemRole::own_message;
  out += has_system ? "{%- set rule_role = 'system' -%}" : "{%- set rule_role = 'user' -%}";
  out += kMessages;
  if (taken.contents == Contents::parts) out += kParts;
  // The prelude has rendered them.
  out += taken.no_tools == NoTools::none ? "{%- set tools = none -%}" : "{%- set tools = not_there -%}";
  return out + source;
}

}  // namespace winnow::chat
