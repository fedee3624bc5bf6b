// SPDX-License-Identifier: Apache-2.0
#include "chat/grammar_text.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string_view>

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

}  // namespace

std::string either_grammar(const std::string& first, const std::string& second) {
  return fmt::format("root ::= first-root | second-root\n{}\n{}", with_prefix(first, "first-"),
                     with_prefix(second, "second-"));
}

}  // namespace winnow::chat
