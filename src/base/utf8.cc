// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <algorithm>

namespace winnow {

namespace {

bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80; }

/// Length of a character that begins with this byte; 0 if none does.
std::size_t length_of(unsigned char first) {
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  return first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

/// True if a second byte can follow the first one: no overlong form, no surrogate, at most U+10FFFF.
bool can_follow(unsigned char first, unsigned char second) {
  const unsigned char least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned char most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  return least <= second && second <= most;
}

}  // namespace

std::size_t whole_characters(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const auto first = static_cast<unsigned char>(text[at]);
    const std::size_t length = length_of(first);
    if (length == 0 || length > text.size() - at) return at;
    if (length > 1 && !can_follow(first, static_cast<unsigned char>(text[at + 1]))) return at;
    if (!std::ranges::all_of(text.substr(at + 1, length - 1), continues)) return at;
    at += length;
  }
  return at;
}

std::size_t unfinished_character(std::string_view text) {
  for (std::size_t n = 1; n <= std::min<std::size_t>(3, text.size()); ++n) {
    const std::string_view end = text.substr(text.size() - n);
    if (continues(end.front())) continue;
    const auto first = static_cast<unsigned char>(end.front());
    const bool fits = n < 2 || can_follow(first, static_cast<unsigned char>(end[1]));
    return n < length_of(first) && fits ? n : 0;
  }
  return 0;
}

std::string as_utf8(std::string_view text) {
  std::string out;
  for (;;) {
    const std::size_t whole = whole_characters(text);
    out += text.substr(0, whole);
    text.remove_prefix(whole);
    if (text.empty()) return out;
    out += "\uFFFD";
    std::size_t broken = std::min<std::size_t>(3, text.size());
    while (broken > 1 && unfinished_character(text.substr(0, broken)) != broken) --broken;
    text.remove_prefix(broken);
  }
}

}  // namespace winnow
