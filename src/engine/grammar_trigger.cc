// SPDX-License-Identifier: Apache-2.0
#include "engine/grammar_trigger.h"

#include <spdlog/fmt/fmt.h>

#include "winnow/error.h"

namespace winnow::engine {

namespace {

std::vector<std::regex> compiled(std::span<const std::string> patterns) {
  std::vector<std::regex> out;
  for (const auto& pattern : patterns) {
    try {
      out.emplace_back(pattern, std::regex::ECMAScript | std::regex::optimize);
    } catch (const std::regex_error& error) {
      throw UsageError(
          fmt::format("the trigger '{}' of a grammar is not a regular expression: {}", pattern, error.what()));
    }
  }
  return out;
}

}  // namespace

GrammarTrigger::GrammarTrigger(std::span<const std::string> patterns)
    : patterns_(std::make_shared<const std::vector<std::regex>>(compiled(patterns))) {}

std::optional<std::string> GrammarTrigger::take(std::string_view bytes) {
  last_ += bytes;
  constexpr std::size_t kKept = kWindow + 1;
  if (last_.size() > kKept) {
    is_cut_ = true;
    last_.erase(0, last_.size() - kKept);
  }
  const auto flags = is_cut_ ? std::regex_constants::match_prev_avail : std::regex_constants::match_default;
  for (const auto& pattern : *patterns_) {
    std::smatch match;
    if (!std::regex_search(last_.cbegin() + 1, last_.cend(), match, pattern, flags)) continue;
    for (std::size_t group = 1; group < match.size(); ++group) {
      if (match[group].length() > 0) return std::string(match[group].first, last_.cend());
    }
    return std::string(match[0].first, last_.cend());
  }
  return std::nullopt;
}

}  // namespace winnow::engine
