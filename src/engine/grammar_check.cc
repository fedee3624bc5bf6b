// SPDX-License-Identifier: Apache-2.0
#include "engine/grammar_check.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "winnow/error.h"

namespace winnow::engine {

namespace {

constexpr std::size_t kMostBytes = 1 << 20;
constexpr int kMostGroups = 100;
constexpr int kMostTimes = 2000;  // libllama refuses more, or takes them for no limit

/// Where a text in quotes or a class of characters that begins at `at` ends: at its last character.
std::size_t end_of_quoted(std::string_view text, std::size_t at) {
  const char last = text[at] == '[' ? ']' : '"';
  for (++at; at < text.size() && text[at] != last; ++at) {
    if (text[at] == '\\') ++at;
  }
  return at;
}

/// The number that a text begins with, after spaces; none: it begins otherwise.
std::optional<int> number_in(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  int out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error == std::errc::result_out_of_range) return kMostTimes + 1;
  return error == std::errc() ? std::optional(out) : std::nullopt;
}

/// `{m}`, `{m,}` or `{m,n}`, without its braces.
void check_repetition(std::string_view inner) {
  const std::size_t comma = inner.find(',');
  const auto least = number_in(inner.substr(0, comma));
  const auto most = comma == std::string_view::npos ? least : number_in(inner.substr(comma + 1));
  if (!least) return;
  if (*least > kMostTimes || most.value_or(0) > kMostTimes)
    throw UsageError(fmt::format("the grammar repeats something {{{}}} times: at most {}", inner, kMostTimes));
  if (most && *most < *least)
    throw UsageError(
        fmt::format("the grammar repeats something {{{}}} times: {} is less than {}", inner, *most, *least));
}

}  // namespace

void check_grammar(std::string_view text) {
  if (text.size() > kMostBytes)
    throw UsageError(fmt::format("a grammar of {} bytes: at most {} are read", text.size(), kMostBytes));
  if (text.find('\0') != std::string_view::npos) throw UsageError("the grammar has a zero byte: it must be text");
  int groups = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"' || c == '[') at = end_of_quoted(text, at);
    if (c == '#') at = std::min(text.find_first_of("\r\n", at), text.size());
    if (c == '{') check_repetition(text.substr(at + 1, text.find('}', at) - at - 1));
    groups += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (groups > kMostGroups)
      throw UsageError(fmt::format("the grammar has more than {} groups within each other", kMostGroups));
  }
}

}  // namespace winnow::engine
