// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace winnow::cli {

/// Parses a number of bytes: a plain number, or with KiB, MiB or GiB. Throws UsageError that names the option.
std::size_t size_of(const char* option, const std::string& text);

}  // namespace winnow::cli
