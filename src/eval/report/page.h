// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "eval/record.h"

namespace winnow::eval {

/// One HTML page that needs nothing else: tables, curves, heat maps. Plots are gnuplot's; where it is not there the
/// page has its tables and says so.
std::string to_page(const std::vector<Record>& records, const std::vector<std::string>& folders);

/// What it looks like in a light and a dark browser, on a phone and on paper.
extern const char* const kStyle;

}  // namespace winnow::eval
