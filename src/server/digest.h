// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace winnow::server {

/// The SHA-256 of a text, as 64 hexadecimal digits.
std::string digest_of(std::string_view text);

}  // namespace winnow::server
