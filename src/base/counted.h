// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace winnow {

/// A number with its noun, in the plural unless it is 1: `1 token`, `0 tokens`. By default the plural is the noun with
/// an s.
std::string counted(std::uint64_t count, std::string_view noun, std::string_view plural = {});

}  // namespace winnow
