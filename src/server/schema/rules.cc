// SPDX-License-Identifier: Apache-2.0
#include "server/schema/rules.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace winnow::server {

namespace {

/// Numbers and white space end, so that a model cannot go on with them for ever. An exponent cannot overflow a double.
/// Escaped surrogates come in pairs only: others are no Unicode.
constexpr const char* kJson = R"gbnf(ws ::= | " " | "\n" [ \t]{0,20}
hex ::= [0-9a-fA-F]
unit ::= [0-9a-cefA-CEF] hex{3} | [dD] [0-7] hex{2} | [dD] [89abAB] hex{2} "\\u" [dD] [c-fC-F] hex{2}
char ::= [ !#-\[\]-~\u0080-\uD7FF\uE000-\uFFFF\U00010000-\U0010FFFF] | "\\" (["\\/bfnrt] | "u" unit)
string ::= "\"" char* "\""
integer ::= "-"? ("0" | [1-9] [0-9]{0,15})
number ::= integer ("." [0-9]{1,16})? ([eE] [-+]? [0-9]{1,2})?
boolean ::= "true" | "false"
null ::= "null"
value ::= object | array | string | number | boolean | null
member ::= string ":" ws value
object ::= "{" ws (member ("," ws member)*)? ws "}"
array ::= "[" ws (value ("," ws value)*)? ws "]"
)gbnf";

constexpr std::int64_t kBlock = 64;

}  // namespace

Rules::Rules() : text_(kJson) {}

void Rules::define(const std::string& name, const std::string& body) { text_ += name + " ::= " + body + "\n"; }

std::string Rules::named(const std::string& body) {
  const auto [found, is_new] = names_.emplace(body, fmt::format("part{}", names_.size()));
  if (is_new) define(found->second, body);
  return found->second;
}

std::string Rules::repeated(const std::string& rule, const Times& times) {
  const auto [least, most] = times;
  const std::int64_t more = most.value_or(least) - least;
  if (most.value_or(least) <= 2 * kBlock) {
    repetitions_ += most.value_or(least) + 1;
    return fmt::format("{}{{{},{}}}", rule, least, most ? std::to_string(*most) : "");
  }
  const std::string block = named(fmt::format("{}{{{}}}", rule, kBlock));
  const std::int64_t blocks = std::max<std::int64_t>(0, (more - kBlock + 1) / kBlock);  // any length is left possible
  const std::string begin = fmt::format("{}{{{}}} {}{{{}}}", block, least / kBlock, rule, least % kBlock);
  repetitions_ += kBlock + least / kBlock + least % kBlock + blocks + more - blocks * kBlock;
  if (!most) return fmt::format("{} {}*", begin, rule);
  return fmt::format("{} {}{{0,{}}} {}{{0,{}}}", begin, block, blocks, rule, more - blocks * kBlock);
}

std::string literal(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\x{:02x}", static_cast<int>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

}  // namespace winnow::server
