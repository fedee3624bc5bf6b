// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace winnow::server {

/// Removes and returns all bytes of `held` but an incomplete character at its end.
std::string take_whole_characters(std::string& held);

/// True if a text consists of whole characters.
bool is_utf8(std::string_view text);

/// Number of characters of a text, with an approximate count for invalid UTF-8.
std::size_t count_characters(std::string_view text);

}  // namespace winnow::server
