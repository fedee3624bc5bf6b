// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "eval/report/grid.h"
#include "eval/summary.h"

namespace winnow::eval {

/// Text as HTML, in elements and in attributes.
std::string escaped(const std::string& text);

/// The rows of a table with what it says about them; nothing for a table without columns.
std::string to_html(const Table& table, const std::string& title, const std::string& says);

/// Methods by budgets.
std::string to_html(const Grid& grid);

}  // namespace winnow::eval
