// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "eval/report/tradeoff.h"

namespace winnow::eval {

/// A stand-alone SVG: quality over bytes has a curve for each method and KV type, quality over time a point for each
/// method and budget; both have 95 % intervals. The first Chart::kColoured methods have colours, the others are grey.
/// The SVG's description lists all figures. Throws what gnuplot() throws, and InputError if there is nothing to draw.
std::string to_svg(const Tradeoff& tradeoff);

}  // namespace winnow::eval
