// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace winnow::server {

/// How often something may come.
struct Times {
  std::int64_t least = 0;
  std::optional<std::int64_t> most;  ///< none: any number of times
};

/// The most that `Times` may be.
constexpr std::int64_t kMostTimes = 100'000;

/// The rules of a grammar in GBNF, as they are collected. It begins with those of JSON: `value`, `object`, `array`,
/// `string`, `char` (of a string), `number`, `integer`, `boolean`, `null`, `ws`.
class Rules {
 public:
  Rules();

  void define(const std::string& name, const std::string& body);
  /// The name of a rule with this body.
  std::string named(const std::string& body);
  /// What stands for a rule that comes so often. libllama writes a repetition out, so a long one is made of blocks.
  std::string repeated(const std::string& rule, const Times& times);

  const std::string& text() const { return text_; }
  /// How many rules libllama will make of repetitions.
  std::int64_t repetitions() const { return repetitions_; }

 private:
  std::string text_;
  std::map<std::string, std::string> names_;
  std::int64_t repetitions_ = 0;
};

/// A text of its own in GBNF.
std::string literal(std::string_view text);

}  // namespace winnow::server
