// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace winnow::server {

/// The most values that a text can have as JSON, whether it is JSON or not: one for each bracket that opens and each
/// comma outside of strings. Takes a moment, where parsing takes memory.
std::size_t most_values(std::string_view json);

}  // namespace winnow::server
