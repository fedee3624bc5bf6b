// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "cli/kept/kept.h"

namespace winnow::cli {

/// How the picture is drawn on a terminal.
struct Canvas {
  int width = 80;  ///< columns
  enum class Shades : std::uint8_t { blocks, ascii } shades = Shades::blocks;
};

/// The width of the terminal, and what it can show.
Canvas terminal_canvas();

/// Head line, one row for each layer and KV head, legend.
std::string picture(const Kept& kept, const Canvas& canvas);

/// Draws the picture to an .svg or .png with gnuplot. Throws UsageError for another name, InputError when gnuplot is
/// not there or fails.
void plot(const Kept& kept, const std::string& path);

}  // namespace winnow::cli
