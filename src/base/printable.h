// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace winnow {

/// Makes text from outside safe for a terminal: replaces control characters, those that change the writing direction,
/// and bytes that are not UTF-8 by \xNN.
std::string printable(std::string_view text);

/// The same, limited to the first 80 bytes.
std::string brief(std::string_view text);

}  // namespace winnow
