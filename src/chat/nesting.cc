// SPDX-License-Identifier: Apache-2.0
#include "chat/nesting.h"

#include <jinja/lexer.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include "chat/template.h"

namespace winnow::chat {

namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;
constexpr int kMostNested = 100;     // brackets or blocks
constexpr int kMostTogether = 2000;  // consecutive tokens of an expression, each of which may nest in the next one
constexpr int kMostElifs = 1000;     // parsed as an `if` in the `else` before them

using Type = jinja::token::type;

/// True if `set` at this place begins a block that is assigned to its variable.
bool is_block_set(const std::vector<jinja::token>& tokens, std::size_t at) {
  for (; at < tokens.size() && tokens[at].t != Type::close_statement; ++at) {
    if (tokens[at].t == Type::equals) return false;
  }
  return true;
}

/// Measures how deeply the tokens of a template nest.
class Nesting {
 public:
  explicit Nesting(std::string name) : name_(std::move(name)) {}

  void add(const std::vector<jinja::token>& tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      add(tokens[i].t);
      if (tokens[i].t == Type::open_statement && i + 1 < tokens.size()) add_statement(tokens, i + 1);
    }
  }

 private:
  void add(Type type) {
    switch (type) {
      case Type::open_statement:
      case Type::open_expression:
        together_ = 0;
        brackets_ = 0;
        break;
      case Type::open_paren:
      case Type::open_square_bracket:
      case Type::open_curly_bracket:
        check(++brackets_, kMostNested, "brackets within brackets");
        break;
      case Type::close_paren:
      case Type::close_square_bracket:
      case Type::close_curly_bracket:
        --brackets_;
        break;
      default:
        break;
    }
    check(++together_, kMostTogether, "tokens in one expression");
  }

  void add_statement(const std::vector<jinja::token>& tokens, std::size_t at) {
    constexpr std::array<std::string_view, 6> kBlocks{"if", "for", "macro", "call", "filter", "generation"};
    const std::string_view word = tokens[at].value;
    if (std::ranges::find(kBlocks, word) != kBlocks.end() || (word == "set" && is_block_set(tokens, at)))
      check(++blocks_, kMostNested, "blocks within blocks");
    if (word.starts_with("end")) --blocks_;
    if (word == "elif") check(++elifs_, kMostElifs, "times elif");
  }

  void check(int count, int most, std::string_view what) const {
    if (count > most) throw TemplateError(fmt::format("{}: the chat template has more than {} {}", name_, most, what));
  }

  std::string name_;
  int brackets_ = 0;
  int blocks_ = 0;
  int together_ = 0;
  int elifs_ = 0;
};

}  // namespace

void check_nesting(const std::string& name, const std::string& source) {
  if (source.size() > kMostBytes) {
    throw TemplateError(
        fmt::format("{}: the chat template has {} bytes; at most {} are allowed", name, source.size(), kMostBytes));
  }
  jinja::lexer lexer;
  Nesting(name).add(lexer.tokenize(source).tokens);
}

}  // namespace winnow::chat
