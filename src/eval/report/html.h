// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "eval/report/grid.h"
#include "eval/summary.h"

namespace winnow::eval {

/// Escapes a text for HTML, in elements and attributes.
std::string escaped(const std::string& text);

/// A table cell that carries its column's name for narrow pages. `inside` is HTML.
std::string cell_html(const std::string& column, const std::string& inside);

/// A table with its title and a note; "" for a table without columns.
std::string to_html(const Table& table, const std::string& title, const std::string& says);

/// A grid as a table.
std::string to_html(const Grid& grid);

}  // namespace winnow::eval
