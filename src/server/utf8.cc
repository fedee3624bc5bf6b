// SPDX-License-Identifier: Apache-2.0
#include "server/utf8.h"

#include <algorithm>
#include <cstddef>

#include "base/utf8.h"

namespace winnow::server {

std::string take_whole_characters(std::string& held) {
  const std::size_t whole = held.size() - unfinished_character(held);
  std::string out = held.substr(0, whole);
  held.erase(0, whole);
  return out;
}

bool is_utf8(std::string_view text) { return whole_characters(text) == text.size(); }

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80; }));
}

}  // namespace winnow::server
