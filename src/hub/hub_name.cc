// SPDX-License-Identifier: Apache-2.0
#include "hub/hub_name.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <string_view>

#include "base/printable.h"
#include "winnow/error.h"

namespace winnow::hub {

namespace {

constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
constexpr std::size_t kLongestRepository = 256;  // bytes, as in llama.cpp

/// True for letters with single dots and dashes between them.
bool is_word(std::string_view text) {
  bool after_letter = false;
  for (const char c : text) {
    const bool is_letter = kLetters.find(c) != std::string_view::npos;
    if (!is_letter && !((c == '.' || c == '-') && after_letter)) return false;
    after_letter = is_letter;
  }
  return after_letter;
}

bool is_repository(std::string_view text) {
  const auto slash = text.find('/');
  return text.size() <= kLongestRepository && slash != std::string_view::npos && is_word(text.substr(0, slash)) &&
         is_word(text.substr(slash + 1));
}

}  // namespace

HubName HubName::parse(const std::string& text) {
  const auto colon = text.find(':');
  HubName out{text.substr(0, colon), colon == std::string::npos ? "" : text.substr(colon + 1)};
  const bool has_quant = colon != std::string::npos;
  if (!is_repository(out.repository) || (has_quant && !is_word(out.quant)))
    throw UsageError(
        fmt::format("'{}' is not the name of a model on a hub: give USER/REPO or USER/REPO:QUANT", brief(text)));
  return out;
}

}  // namespace winnow::hub
