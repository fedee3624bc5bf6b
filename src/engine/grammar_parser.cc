// SPDX-License-Identifier: Apache-2.0
#include "engine/grammar_parser.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/printable.h"
#include "winnow/error.h"

namespace winnow::engine {

namespace {

using Part = GrammarBuilder::Part;

constexpr std::size_t kMostGrammarBytes = 1 << 20;
constexpr int kMostGroups = 100;
constexpr int kMostTimes = 2000;

bool is_of_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

class GbnfParser {
 public:
  GbnfParser(std::string_view text, GrammarBuilder& builder) : text_(text), builder_(builder) {}

  std::int32_t parse() {
    for (skip_lines(); !is_at_end(); skip_lines()) parse_rule();
    for (const auto& [name, rule] : rules_) {
      if (!rule.is_defined) fail(fmt::format("there is no rule '{}'", brief(name)));
    }
    const auto root = rules_.find("root");
    if (root == rules_.end()) fail("there is no rule 'root'");
    return root->second.number;
  }

 private:
  struct Rule {
    std::int32_t number;
    bool is_defined = false;
  };

  bool is_at_end() const { return at_ == text_.size(); }
  char peek() const { return is_at_end() ? '\0' : text_[at_]; }
  bool takes(std::string_view what) {
    if (!text_.substr(at_).starts_with(what)) return false;
    at_ += what.size();
    return true;
  }
  [[noreturn]] void fail(std::string_view why) const {
    const auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n');
    throw UsageError(fmt::format("the grammar of {} bytes is not valid GBNF: line {}: {}", text_.size(), line, why));
  }

  /// Skips spaces and comments up to the end of the line.
  void skip_spaces() {
    while (peek() == ' ' || peek() == '\t' || peek() == '#') {
      at_ = peek() == '#' ? std::min(text_.find_first_of("\r\n", at_), text_.size()) : at_ + 1;
    }
  }
  void skip_lines() {
    for (skip_spaces(); peek() == '\r' || peek() == '\n'; skip_spaces()) ++at_;
  }
  /// Skips white space. A line break ends a rule, but not within a group.
  void skip() { groups_ > 0 ? skip_lines() : skip_spaces(); }

  std::string name() {
    const std::size_t begin = at_;
    while (is_of_name(peek())) ++at_;
    if (at_ == begin) fail(is_at_end() ? "a name is missing at the end" : "a name should be here");
    return std::string(text_.substr(begin, at_ - begin));
  }

  Rule& rule_of(const std::string& name) {
    const auto found = rules_.find(name);
    return found != rules_.end() ? found->second : rules_.emplace(name, Rule{builder_.add_rule()}).first->second;
  }

  void parse_rule() {
    Rule& rule = rule_of(name());
    skip_spaces();
    if (!takes("::=")) fail("'::=' should follow the name of a rule");
    skip_lines();
    builder_.define(rule.number, alternatives());
    rule.is_defined = true;
    if (!is_at_end() && peek() != '\r' && peek() != '\n') fail("a rule should end here, at the end of a line");
  }

  Part alternatives() {
    std::vector<Part> all{sequence()};
    while (takes("|")) {
      skip_lines();
      all.push_back(sequence());
    }
    return builder_.any_of(all);
  }

  Part sequence() {
    Part out = builder_.nothing();
    while (const auto next = element()) {
      Part part = *next;
      skip();
      while (repeats(part)) skip();
      out = builder_.sequence(out, part);
    }
    return out;
  }

  /// Nullopt at the end of a sequence.
  std::optional<Part> element() {
    switch (peek()) {
      case '"':
        return literal();
      case '[':
        return one_of();
      case '(':
        return group();
      case '.':
        ++at_;
        return builder_.character({{1, kLastCharacter}});
      case '*':
      case '+':
      case '?':
      case '{':
        fail("nothing precedes the repetition");
      default:
        return is_of_name(peek()) ? std::optional(builder_.call(rule_of(name()).number)) : std::nullopt;
    }
  }

  Part literal() {
    std::string bytes;
    for (++at_; peek() != '"';) append_utf8(bytes, character());
    ++at_;
    return builder_.bytes(bytes);
  }

  Part group() {
    if (++groups_ > kMostGroups) fail(fmt::format("more than {} groups are nested", kMostGroups));
    ++at_;
    skip_lines();
    const Part out = alternatives();
    if (!takes(")")) fail("a group is not closed");
    --groups_;
    return out;
  }

  Part one_of() {
    ++at_;
    const bool is_negated = takes("^");
    std::vector<CharacterRange> ranges;
    while (peek() != ']') {
      const char32_t first = character();
      const bool goes_on = peek() == '-' && text_.substr(at_ + 1, 1) != "]";
      if (goes_on) ++at_;
      ranges.emplace_back(first, goes_on ? character() : first);
    }
    ++at_;
    return builder_.character(is_negated ? others(std::move(ranges)) : ranges);
  }

  static std::vector<CharacterRange> others(std::vector<CharacterRange> ranges) {
    std::sort(ranges.begin(), ranges.end());
    std::vector<CharacterRange> out;
    char32_t next = 1;
    for (const auto& [first, last] : ranges) {
      if (first > next) out.emplace_back(next, first - 1);
      next = std::max<char32_t>(next, last + 1);
    }
    if (next <= kLastCharacter) out.emplace_back(next, kLastCharacter);
    return out;
  }

  /// One character of a literal or class, possibly escaped.
  char32_t character() {
    if (is_at_end()) fail("a string or character class is not closed");
    const auto byte = static_cast<unsigned char>(text_[at_++]);
    if (byte == '\\') return escaped();
    if (byte < 0x80) return byte;
    const int more = byte >= 0xF0 ? 3 : byte >= 0xE0 ? 2 : 1;
    char32_t out = byte & (0x3F >> more);
    for (int i = 0; i < more; ++i) {
      if ((static_cast<unsigned char>(peek()) & 0xC0) != 0x80) fail("it is not UTF-8");
      out = out << 6 | (static_cast<unsigned char>(text_[at_++]) & 0x3F);
    }
    return out;
  }

  char32_t escaped() {
    const char c = peek();
    at_ += is_at_end() ? 0 : 1;
    switch (c) {
      case 'x':
        return hexadecimal(2);
      case 'u':
        return hexadecimal(4);
      case 'U':
        return hexadecimal(8);
      case 't':
        return '\t';
      case 'r':
        return '\r';
      case 'n':
        return '\n';
      case '\\':
      case '"':
      case '[':
      case ']':
        return static_cast<unsigned char>(c);
      default:
        fail("an escape must be \\x, \\u, \\U, \\t, \\r, \\n, \\\\, \\\", \\[ or \\]");
    }
  }

  char32_t hexadecimal(std::size_t digits) {
    std::uint32_t out = 0;
    const std::string_view number = text_.substr(at_, digits);
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), out, 16);
    if (number.size() < digits || error != std::errc() || end != number.data() + digits || out > kLastCharacter)
      fail(fmt::format("an escape should have {} hexadecimal digits that are a character's number", digits));
    at_ += digits;
    return out;
  }

  /// Applies a repetition operator to a part. Returns false if none follows.
  bool repeats(Part& part) {
    if (takes("*")) {
      part = builder_.repeated(part, 0, std::nullopt);
    } else if (takes("+")) {
      part = builder_.repeated(part, 1, std::nullopt);
    } else if (takes("?")) {
      part = builder_.repeated(part, 0, 1);
    } else if (takes("{")) {
      part = times(part);
    } else {
      return false;
    }
    return true;
  }

  Part times(const Part& part) {
    const int least = number();
    if (!takes(",")) {
      if (!takes("}")) fail("a repetition should be {m}, {m,} or {m,n}");
      return builder_.repeated(part, least, least);
    }
    skip_spaces();
    if (takes("}")) return builder_.repeated(part, least, std::nullopt);
    const int most = number();
    if (!takes("}")) fail("a repetition should be {m}, {m,} or {m,n}");
    if (most < least)
      fail(fmt::format("a repetition of {} to {} times is not possible: {} is less than {}", least, most, most, least));
    return builder_.repeated(part, least, most);
  }

  int number() {
    skip_spaces();
    int out = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), out);
    if (error == std::errc::invalid_argument || out < 0) fail("a repetition should be {m}, {m,} or {m,n}");
    if (error != std::errc() || out > kMostTimes)
      fail(fmt::format("a repetition of more than {} times is not possible", kMostTimes));
    at_ = static_cast<std::size_t>(end - text_.data());
    skip_spaces();
    return out;
  }

  std::string_view text_;
  GrammarBuilder& builder_;
  std::size_t at_ = 0;
  int groups_ = 0;
  std::map<std::string, Rule> rules_;
};

}  // namespace

std::int32_t parse_grammar(std::string_view text, GrammarBuilder& builder) {
  if (text.size() > kMostGrammarBytes)
    throw UsageError(fmt::format("the grammar has {} bytes: at most {} are allowed", text.size(), kMostGrammarBytes));
  if (text.find('\0') != std::string_view::npos) throw UsageError("the grammar has a zero byte: it must be text");
  return GbnfParser(text, builder).parse();
}

}  // namespace winnow::engine
