// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "eval/report/grid.h"
#include "eval/summary.h"

namespace winnow::eval {

/// Text as HTML, in elements and in attributes.
std::string escaped(const std::string& text);

/// A cell of a table, which says itself where the page is narrow of which column it is. `inside` is HTML.
std::string cell_html(const std::string& column, const std::string& inside);

/// A table with its title and a note; nothing for a table without columns.
std::string to_html(const Table& table, const std::string& title, const std::string& says);

/// A grid as a table.
std::string to_html(const Grid& grid);

}  // namespace winnow::eval
