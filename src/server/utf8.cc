// SPDX-License-Identifier: Apache-2.0
#include "server/utf8.h"

#include <algorithm>
#include <cstddef>

namespace winnow::server {

namespace {

bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80; }

/// Bytes of a character that begins with this one; 0 where none does.
std::size_t length_of(unsigned char first) {
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  return first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

/// Whether a second byte can follow the first one: not too long a form, no surrogate, no more than U+10FFFF.
bool can_follow(unsigned char first, unsigned char second) {
  const unsigned char least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned char most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  return least <= second && second <= most;
}

/// Bytes at the end that are the beginning of a character.
std::size_t unfinished(std::string_view text) {
  for (std::size_t n = 1; n <= std::min<std::size_t>(3, text.size()); ++n) {
    const std::string_view end = text.substr(text.size() - n);
    if (continues(end.front())) continue;
    const auto first = static_cast<unsigned char>(end.front());
    const bool fits = n < 2 || can_follow(first, static_cast<unsigned char>(end[1]));
    return n < length_of(first) && fits ? n : 0;
  }
  return 0;
}

}  // namespace

std::string take_whole_characters(std::string& held) {
  const std::size_t whole = held.size() - unfinished(held);
  std::string out = held.substr(0, whole);
  held.erase(0, whole);
  return out;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text.front());
    const std::size_t length = length_of(first);
    if (length == 0 || length > text.size()) return false;
    if (length > 1 && !can_follow(first, static_cast<unsigned char>(text[1]))) return false;
    if (!std::ranges::all_of(text.substr(1, length - 1), continues)) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char byte) { return !continues(byte); }));
}

}  // namespace winnow::server
