// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <limits>

namespace winnow::cli {

/// For options that count something. CLI11's own checks name the largest double, with all its digits.
inline CLI::Range counts_from(int least) { return {least, std::numeric_limits<int>::max()}; }

}  // namespace winnow::cli
