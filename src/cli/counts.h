// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

namespace winnow::cli {

/// Validates options that count something: a whole number of at least `least`.
CLI::Validator counts_from(int least);
/// Validate whole numbers, or any numbers, in an inclusive range.
CLI::Validator whole_number(int least, int most);
CLI::Validator number(double least, double most);

}  // namespace winnow::cli
