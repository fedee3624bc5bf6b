// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace winnow::eval {

/// Placeholder colours, which embedded() replaces by the page's CSS variables. gnuplot draws nothing else in them.
inline constexpr const char* kInk = "#010203";
inline constexpr const char* kGrid = "#010204";
std::string series_colour(std::size_t i);

/// Quotes a name for gnuplot, with `?` for markup characters: gnuplot does not escape them in its SVG.
std::string plain(const std::string& text);

/// Commands that reset gnuplot, and set terminal, border, tics and key. Width and height are in pixels.
std::string begin_script(int width, int height, int font);

/// Sets the title of an axis, "x" or "y".
std::string axis_title(const char* name, const std::string& title);

}  // namespace winnow::eval
