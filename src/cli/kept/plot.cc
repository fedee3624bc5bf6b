// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <filesystem>

#include "base/as_size.h"
#include "cli/kept/picture.h"
#include "cli/output.h"
#include "eval/report/gnuplot.h"
#include "winnow/error.h"

namespace winnow::cli {

namespace {

constexpr int kMostBins = 740;  // the plot's width in pixels
/// The plot's place, as shares of the picture: gnuplot's own margins have no room for the colour bar's label.
constexpr const char* kMargins =
    "set lmargin at screen 0.10\nset rmargin at screen 0.84\nset bmargin at screen 0.13\nset tmargin at screen 0.92\n";

std::string terminal_of(const std::string& path) {
  const auto extension = std::filesystem::path(path).extension();
  if (extension == ".svg") return "svg size 1000,700 font ',15' background 'white'";
  if (extension == ".png") return "pngcairo size 1000,700 font ',13'";
  throw UsageError(fmt::format("-o {}: give a name that ends in .svg or .png", path));
}

/// A gnuplot script that writes the picture to stdout: settings, then a row of densities for each head.
std::string script(const Kept& kept, const std::string& terminal) {
  const int bins = std::min(kept.n_prompt, kMostBins);
  const auto rows = kept.chosen().size() * as_size(kept.heads());
  const double share = 100.0 * static_cast<double>(kept.entries()) / (static_cast<double>(rows) * kept.n_prompt);
  std::string out = fmt::format(
      "set terminal {}\n{}set title {} noenhanced\nset xlabel 'position in the prompt'\nset ylabel 'layer'\n"
      "set cblabel 'share of kept tokens'\nset cbrange [0:1]\n"
      "set palette defined (0 'white', 0.25 '#9ecae1', 1 '#08306b')\nset tics out nomirror\nset format x '%.0f'\n"
      "set xrange [0:{}]\nset yrange [{}:0]\n"
      "plot '-' matrix using (($1+0.5)*{}):(($2+0.5)/{}.0):3 with image notitle\n",
      terminal, kMargins,
      eval::gnuplot_text(fmt::format("{}: {:.1f} % of {} tokens kept", kept.spec, share, kept.n_prompt)), kept.n_prompt,
      kept.layers.size(), static_cast<double>(kept.n_prompt) / bins, kept.heads());
  for (const auto& layer : kept.layers) {
    for (const auto& head : layer) {
      for (const double density : densities(head, kept.n_prompt, bins)) out += fmt::format("{:.3g} ", density);
      out += "\n";
    }
  }
  return out + "e\n";
}

}  // namespace

void plot(const Kept& kept, const std::string& path) {
  const std::string terminal = terminal_of(path);
  // A picture does not show who made it, so existing files are not replaced.
  if (std::filesystem::exists(path))
    throw InputError(fmt::format("{} already exists: give the name of a new file", path));
  write_file(path, eval::gnuplot(script(kept, terminal)));
}

}  // namespace winnow::cli
