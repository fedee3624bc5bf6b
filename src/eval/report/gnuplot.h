// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace winnow::eval {

/// Quotes a text as a string of a script, in single quotes, where gnuplot's only escape is the doubled quote. Control
/// characters become spaces.
std::string gnuplot_text(const std::string& text);

/// Runs a script and returns gnuplot's stdout. Throws InputError if gnuplot is missing (see has_gnuplot()) or fails.
std::string gnuplot(const std::string& script);
/// The SVGs of scripts, all drawn by one process. Each script sets an svg terminal. Throws as gnuplot() does.
std::vector<std::string> gnuplot_svgs(const std::vector<std::string>& scripts);

/// True if gnuplot is on the PATH.
bool has_gnuplot();

}  // namespace winnow::eval
