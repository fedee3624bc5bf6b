// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/grammar_rules.h"

namespace winnow::engine {

/// Characters from the first to the last one.
using CharacterRange = std::pair<char32_t, char32_t>;

constexpr char32_t kLastCharacter = 0x10FFFF;

/// Builds the states of a grammar's rules. Throws UsageError if there are too many.
class GrammarBuilder {
 public:
  /// A fragment of a rule: its first state, and a fork without a successor to which the next fragment is attached.
  struct Part {
    std::int32_t begin;
    std::int32_t end;
  };

  /// `begins`: the first state of each rule, [rule].
  GrammarBuilder(std::vector<GrammarState>& states, std::vector<std::int32_t>& begins)
      : states_(states), begins_(begins) {}

  /// Adds a rule without states.
  std::int32_t add_rule();
  /// Makes the part the rule's body.
  void define(std::int32_t rule, const Part& part);

  Part nothing();
  Part bytes(std::string_view all);
  /// One character of these ranges, surrogates excluded.
  Part character(const std::vector<CharacterRange>& ranges);
  Part call(std::int32_t rule);
  Part sequence(const Part& first, const Part& second);
  /// REQUIRES: at least one.
  Part any_of(const std::vector<Part>& all);
  /// `most`: nullopt is unlimited.
  Part repeated(const Part& part, int least, std::optional<int> most);

 private:
  std::int32_t add(const GrammarState& state);
  std::int32_t fork() { return add({}); }
  void add_range(const Part& to, char32_t first, char32_t last);
  Part counted(const Part& part, int least, std::optional<int> most);

  std::vector<GrammarState>& states_;
  std::vector<std::int32_t>& begins_;
};

/// Appends a character as UTF-8.
void append_utf8(std::string& to, char32_t character);

}  // namespace winnow::engine
