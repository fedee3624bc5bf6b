// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace winnow::server {

/// Takes from `held` all bytes but the beginning of a character whose other bytes may still come.
std::string take_whole_characters(std::string& held);

/// Whether all of a text is whole characters.
bool is_utf8(std::string_view text);

/// Characters of a text; bytes that are no UTF-8 count as well as they can.
std::size_t count_characters(std::string_view text);

}  // namespace winnow::server
