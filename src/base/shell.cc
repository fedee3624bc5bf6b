// SPDX-License-Identifier: Apache-2.0
#include "base/shell.h"

#include <algorithm>
#include <cctype>

namespace winnow {

std::string shell_word(std::string_view text) {
  const auto is_plain = [](unsigned char c) {
    return c >= 0x80 || std::isalnum(c) != 0 ||
           std::string_view("%+,-./:=@_").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!text.empty() && std::ranges::all_of(text, is_plain)) return std::string(text);
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

}  // namespace winnow
