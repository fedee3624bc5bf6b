// SPDX-License-Identifier: Apache-2.0
#include "chat/answer_parser.h"

#include <jinja/limits.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace winnow::chat {

namespace {

bool is_of_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_'; }

/// End of a grammar's word: a literal, a character class, a repetition count, a name, or any other character.
std::size_t end_of_word(std::string_view grammar, std::size_t begin) {
  const char first = grammar[begin];
  const char last = first == '"' ? '"' : first == '[' ? ']' : first == '{' ? '}' : '\0';
  std::size_t end = begin + 1;
  if (last != '\0') {
    while (end < grammar.size() && grammar[end] != last) end += grammar[end] == '\\' ? 2 : 1;
    return std::min(end + 1, grammar.size());
  }
  while (is_of_name(first) && end < grammar.size() && is_of_name(grammar[end])) ++end;
  return end;
}

/// The grammar with a prefix before the name of each rule.
std::string with_prefix(std::string_view grammar, std::string_view prefix) {
  std::string out;
  for (std::size_t begin = 0; begin < grammar.size();) {
    const auto end = end_of_word(grammar, begin);
    if (is_of_name(grammar[begin])) out += prefix;
    out += grammar.substr(begin, end - begin);
    begin = end;
  }
  return out;
}

/// GBNF grammar that accepts the texts of either grammar.
std::string either_grammar(const std::string& first, const std::string& second) {
  return fmt::format("root ::= first-root | second-root\n{}\n{}", with_prefix(first, "first-"),
                     with_prefix(second, "second-"));
}

constexpr std::size_t kMostParsed = std::size_t{4} << 20;
constexpr std::size_t kParserSteps = 100'000;
constexpr std::size_t kParserStepsForByte = 64;
constexpr std::size_t kParserDepth = 2000;

Message message_of(common_chat_msg&& read) {
  Message out{Role::assistant, std::move(read.content)};
  out.reasoning = std::move(read.reasoning_content);
  for (auto& call : read.tool_calls)
    out.calls.push_back({std::move(call.id), std::move(call.name), std::move(call.arguments)});
  return out;
}

std::string escaped(std::string_view word) {
  std::string out;
  for (const char c : word) {
    if (std::string_view(R"(.^$|()*+?[]{}\)").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

/// A trigger as a regular expression.
std::string pattern_of(const common_grammar_trigger& trigger) {
  if (trigger.type == COMMON_GRAMMAR_TRIGGER_TYPE_PATTERN) return trigger.value;
  if (trigger.type == COMMON_GRAMMAR_TRIGGER_TYPE_PATTERN_FULL) return "^(?:" + trigger.value + ")$";
  return escaped(trigger.value);
}

/// The thinking at the end of a prompt; empty if the prompt does not end within it.
std::optional<std::string> thinking_at_end(const AnswerFormat& format, const std::string& prompt) {
  const auto start = format.thinking_start.empty() ? std::string::npos : prompt.rfind(format.thinking_start);
  if (start == std::string::npos) return std::nullopt;
  auto rest = prompt.substr(start + format.thinking_start.size());
  const auto has_end = [&rest](const std::string& end) { return rest.find(end) != std::string::npos; };
  return std::ranges::any_of(format.thinking_ends, has_end) ? std::nullopt : std::optional(std::move(rest));
}

/// True if a text may be the beginning of one with this format.
bool is_beginning(const common_chat_parser_params& params, std::string_view text) {
  common_peg_parse_context context(params.generation_prompt + std::string(text), COMMON_PEG_PARSE_FLAG_LENIENT);
  return !params.parser.parse(context).fail();
}

void add_all(std::vector<std::string>& to, const std::vector<std::string>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

void remove_prefix(std::string& text, const std::string& prefix) {
  if (text.starts_with(prefix)) text.erase(0, prefix.size());
}

}  // namespace

std::optional<Message> AnswerFormat::Parser::parse(std::string_view text, Extent extent) const {
  if (text.size() > kMostParsed) return std::nullopt;
  // Answers of untrusted model files are untrusted, and parsing some formats backtracks heavily.
  jinja::limits limits(kParserSteps + kParserStepsForByte * text.size(), std::numeric_limits<std::size_t>::max(),
                       std::numeric_limits<std::size_t>::max(), kParserDepth);
  const jinja::limits_scope scope(limits);
  try {
    if (otherwise != nullptr && !is_beginning(params, text)) return otherwise->parse(text, extent);
    auto out = message_of(common_chat_parse(std::string(text), extent == Extent::partial, params));
    remove_prefix(out.reasoning, begun.reasoning);
    remove_prefix(out.content, begun.content);
    return out;
  } catch (const jinja::limit_exceeded&) {
    return std::nullopt;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

AnswerFormat format_of(const common_chat_params& params, common_reasoning_format reasoning, bool continued) {
  AnswerFormat out;
  if (params.grammar_lazy) {
    for (const auto& trigger : params.grammar_triggers) out.triggers.push_back(pattern_of(trigger));
  }
  // A lazy grammar without triggers has no effect.
  if (!params.grammar_lazy || !out.triggers.empty()) out.grammar = params.grammar;
  if (!out.grammar.empty() && out.triggers.empty()) out.prefix = params.generation_prompt;
  out.preserved = params.preserved_tokens;
  out.stops = params.additional_stops;
  out.thinking_start = params.thinking_start_tag;
  out.thinking_ends = params.thinking_end_tags;
  const auto thinking = thinking_at_end(out, params.generation_prompt);
  out.is_thinking = thinking.has_value();

  AnswerFormat::Parser parser{common_chat_parser_params(params)};
  parser.params.reasoning_format = reasoning;
  parser.params.is_continuation = continued;
  if (!params.parser.empty()) parser.params.parser.load(params.parser);
  if (thinking) parser.begun.reasoning = *thinking;
  if (continued) parser.begun = parser.parse("", Extent::partial).value_or(Message{Role::assistant, {}});
  out.parser = std::make_shared<const AnswerFormat::Parser>(std::move(parser));
  return out;
}

AnswerFormat either_of(AnswerFormat first, const AnswerFormat& second) {
  first.grammar = either_grammar(first.grammar, second.grammar);
  add_all(first.preserved, second.preserved);
  add_all(first.stops, second.stops);
  AnswerFormat::Parser parser = *first.parser;
  parser.otherwise = second.parser;
  first.parser = std::make_shared<const AnswerFormat::Parser>(std::move(parser));
  return first;
}

}  // namespace winnow::chat
