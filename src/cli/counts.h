// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

namespace winnow::cli {

/// For options that count something: a whole number from `least` on.
CLI::Validator counts_from(int least);
/// Whole numbers, and any numbers, in a range with its ends.
CLI::Validator whole_number(int least, int most);
CLI::Validator number(double least, double most);

}  // namespace winnow::cli
