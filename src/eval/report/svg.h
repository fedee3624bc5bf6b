// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace winnow::eval {

/// Prepares gnuplot's SVG for a page with several: colours become the page's variables (--ink, --grid, --s0 …), names
/// become unique, and unneeded parts are removed.
std::string embedded(std::string svg, std::size_t number, const std::string& title);

/// Prepares gnuplot's SVG as a file of its own. It has the colours of the pages, light or dark as the reader prefers,
/// and a background, so that it is legible on any page. The description lists the figures for those who do not see
/// them.
std::string standalone(std::string svg, const std::string& title, const std::string& description);

}  // namespace winnow::eval
