// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "papers/result.h"

namespace winnow::papers {

/// A self-contained HTML page: tables, the paper's kind of plot, orders, and missing parts. gnuplot draws the plots;
/// without it the page has only tables and a note about it.
std::string to_page(const std::vector<Result>& results);

}  // namespace winnow::papers
