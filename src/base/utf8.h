// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace winnow {

/// Bytes at the beginning of a text that are whole characters: all of them, where it is UTF-8.
std::size_t whole_characters(std::string_view text);

/// Bytes at the end of a text that are the beginning of a character.
std::size_t unfinished_character(std::string_view text);

/// The same text, with U+FFFD for each beginning of a character that does not go on, and for each byte that begins
/// none: Unicode's recommended practice, and what JSON libraries do.
std::string as_utf8(std::string_view text);

}  // namespace winnow
