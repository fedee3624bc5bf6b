// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "papers/result.h"

namespace winnow::papers {

/// One self-contained HTML page: tables, the paper's kind of plot, orders, and what is missing. gnuplot draws the
/// plots; without it the page has only tables, and says so.
std::string to_page(const std::vector<Result>& results);

}  // namespace winnow::papers
