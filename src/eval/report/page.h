// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "eval/record.h"

namespace winnow::eval {

/// A self-contained HTML page: tables, curves, heat maps. gnuplot draws the plots; without it the page has only tables
/// and a note about it.
std::string to_page(const std::vector<Record>& records, const std::vector<std::string>& folders);

/// The variables of the style sheet: colours for light and dark browsers.
extern const char* const kColours;
/// The rest of the style sheet: for browsers, phones and paper.
extern const char* const kStyle;

}  // namespace winnow::eval
