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

/// Detects the text that starts a lazy grammar. Copies share the patterns.
class GrammarTrigger {
 public:
  /// Patterns are searched in the last bytes of an answer only, so that the time of a token does not grow with the
  /// answer.
  static constexpr std::size_t kWindow = 256;

  /// Throws UsageError for an invalid regular expression.
  explicit GrammarTrigger(std::span<const std::string> patterns);

  /// Takes bytes of an answer. Returns the text from the first non-empty group of a match on, or from the match itself
  /// if it has none; nullopt if no pattern matches.
  std::optional<std::string> take(std::string_view bytes);

 private:
  std::shared_ptr<const std::vector<std::regex>> patterns_;
  std::string last_ = " ";  ///< last bytes, and the byte before them, which `^` looks at
  bool is_cut_ = false;     ///< the answer has more bytes before these
};

}  // namespace winnow::engine
