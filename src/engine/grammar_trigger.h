// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <regex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace winnow::engine {

/// Waits for the text at which a lazy grammar begins. Copies share the patterns.
class GrammarTrigger {
 public:
  /// Bytes at the end of an answer in which patterns are looked for: the time of a token must not grow with the answer.
  static constexpr std::size_t kWindow = 256;

  /// Throws UsageError for what is no regular expression.
  explicit GrammarTrigger(std::span<const std::string> patterns);

  /// Takes bytes of an answer. Returns the text from where a pattern's first group begins, or the pattern; none while
  /// there is none.
  std::optional<std::string> take(std::string_view bytes);

 private:
  std::shared_ptr<const std::vector<std::regex>> patterns_;
  std::string last_ = " ";  ///< and a byte before them, which `^` looks at
  bool is_cut_ = false;     ///< an answer has begun before these bytes
};

}  // namespace winnow::engine
