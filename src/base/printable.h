// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace winnow {

/// Text from outside, fit for a terminal: control characters, those that change the direction of writing, and bytes
/// that are no UTF-8 become \xNN. All other characters stay.
std::string printable(std::string_view text);

/// The same, but no more than the first 80 bytes of a long text.
std::string brief(std::string_view text);

}  // namespace winnow
