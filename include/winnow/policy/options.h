// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "winnow/export.h"

namespace winnow::policy {

/// A declared option of a preset or wrapper, with everything that the parser, the printer and `winnow methods` need.
struct WINNOW_EXPORT Option {
  struct Integer {
    int value;
    int least;
    int most;
  };
  /// A number, or a word for a value that no fixed number expresses.
  struct WordOrInteger {
    std::string value;
    int least;
    int most;
    std::string word = value;
  };
  struct Number {
    double value;
    double least;
    double most;
  };
  struct Choice {
    std::string value;
    std::vector<std::string> all;
  };

  std::string name;
  std::variant<Integer, WordOrInteger, Number, Choice> kind;
  std::string effect;

  std::string default_text() const;
  std::string range_text() const;
  /// The canonical form of a value. Throws UsageError with the range.
  std::string check(std::string_view owner, std::string_view text) const;
};

/// Values of all declared options, in canonical form. Reading an undeclared option is a programming error.
class WINNOW_EXPORT Options {
 public:
  explicit Options(const std::vector<Option>& declared);
  void set(const std::string& name, std::string canonical) { values_.at(name) = std::move(canonical); }

  const std::string& text(const std::string& name) const { return values_.at(name); }
  int integer(const std::string& name) const;
  /// The integer of a WordOrInteger; empty if it is the word.
  std::optional<int> integer_if(const std::string& name) const;
  double number(const std::string& name) const;

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace winnow::policy
