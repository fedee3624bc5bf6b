// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace winnow::eval {

/// A text as a string in a script, in single quotes: there gnuplot's only escape is the doubled quote. Control
/// characters become spaces.
std::string gnuplot_text(const std::string& text);

/// What gnuplot writes to its stdout when it reads a script. Throws InputError when gnuplot is not there (has_gnuplot()
/// tells) or fails.
std::string gnuplot(const std::string& script);
/// The SVG of each script, all drawn by one process. Each script sets an svg terminal. Throws as gnuplot() does.
std::vector<std::string> gnuplot_svgs(const std::vector<std::string>& scripts);

/// Whether there is a gnuplot on the PATH.
bool has_gnuplot();

}  // namespace winnow::eval
