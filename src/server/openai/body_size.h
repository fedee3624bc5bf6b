// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace winnow::server {

/// An upper bound of the number of values in a text if it is parsed as JSON: opening brackets and commas outside of
/// strings. Much cheaper than parsing, which takes memory.
std::size_t most_values(std::string_view json);

}  // namespace winnow::server
