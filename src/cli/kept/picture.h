// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "cli/kept/kept.h"

namespace winnow::cli {

/// How a terminal shows the picture.
struct Canvas {
  int width = 80;  ///< columns
  enum class Shades : std::uint8_t { blocks, ascii } shades = Shades::blocks;
};

/// Returns the terminal's width, and the shades that it can show.
Canvas terminal_canvas();

/// A header, one row for each layer and KV head, and a legend.
std::string picture(const Kept& kept, const Canvas& canvas);

/// Draws the picture to an .svg or .png file with gnuplot. Throws UsageError for another extension, InputError if
/// gnuplot is missing or fails.
void plot(const Kept& kept, const std::string& path);

}  // namespace winnow::cli
