// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace winnow {

/// Undoes the percent-encoding of a part of a URL (RFC 3986, section 2.1). Empty if a % is not followed by two
/// hexadecimal digits.
std::optional<std::string> percent_decoded(std::string_view text);

}  // namespace winnow
