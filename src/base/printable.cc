// SPDX-License-Identifier: Apache-2.0
#include "base/printable.h"

#include <spdlog/fmt/fmt.h>

#include <array>
#include <cstddef>

namespace winnow {

namespace {

unsigned byte_at(std::string_view text, std::size_t at) {
  return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
}

/// True for characters that a terminal acts upon instead of showing them.
bool is_control(char32_t c) {
  const auto within = [c](char32_t first, char32_t last) { return first <= c && c <= last; };
  return c < 0x20 || within(0x7F, 0x9F) || within(0x200E, 0x200F) || within(0x2028, 0x202E) || within(0x2066, 0x2069);
}

/// Bytes of the first character of a text; 0 if it is not UTF-8 or must not be shown.
std::size_t shown_bytes(std::string_view text) {
  const unsigned first = byte_at(text, 0);
  if (first < 0x80) return is_control(first) ? 0 : 1;
  if (first < 0xC0 || first > 0xF4) return 0;
  const std::size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  char32_t character = first & (0x7FU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte_at(text, i) & 0xC0U) != 0x80) return 0;
    character = character << 6U | (byte_at(text, i) & 0x3FU);
  }
  constexpr std::array<char32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = 0xD800 <= character && character <= 0xDFFF;
  return character < kLeast[bytes] || surrogate || character > 0x10FFFF || is_control(character) ? 0 : bytes;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t bytes = shown_bytes(text);
    if (bytes == 0) out += fmt::format("\\x{:02x}", byte_at(text, 0));
    out += text.substr(0, bytes);
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return out;
}

std::string brief(std::string_view text) {
  constexpr std::size_t kMost = 80;
  if (text.size() <= kMost) return printable(text);
  std::size_t end = kMost;
  while (end > 0 && (byte_at(text, end) & 0xC0U) == 0x80) --end;  // cuts between characters
  return printable(text.substr(0, end)) + "...";
}

}  // namespace winnow
