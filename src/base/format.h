// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace winnow {

/// `11.8 MiB`, `512 B`: binary units, one decimal.
std::string format_bytes(std::size_t bytes);

/// `383KiB`: rounded up, in the form that options accept.
std::string format_at_least(std::size_t bytes);

}  // namespace winnow
