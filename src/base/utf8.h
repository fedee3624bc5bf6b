// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace winnow {

/// Bytes of the complete characters at the beginning of a text; all of them if it is UTF-8.
std::size_t whole_characters(std::string_view text);

/// Bytes of an incomplete character at the end of a text.
std::size_t unfinished_character(std::string_view text);

/// Replaces each incomplete character, and each byte that begins none, by U+FFFD, as Unicode recommends and JSON
/// libraries do.
std::string as_utf8(std::string_view text);

}  // namespace winnow
