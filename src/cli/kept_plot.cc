#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <filesystem>

#include "cli/kept.h"
#include "cli/output.h"
#include "eval/report/gnuplot.h"
#include "winnow/error.h"

namespace winnow::cli {

namespace {

constexpr int kMostBins = 1000;

std::string terminal_of(const std::string& path) {
  const auto extension = std::filesystem::path(path).extension();
  if (extension == ".svg") return "svg size 1000,700 background 'white'";
  if (extension == ".png") return "pngcairo size 1000,700";
  throw UsageError(fmt::format("-o {}: a picture is an .svg or a .png", path));
}

/// What gnuplot reads: settings, then a row of densities for each head. The picture goes to its stdout.
std::string script(const Kept& kept, const std::string& terminal) {
  const int bins = std::min(kept.n_prompt, kMostBins);
  const auto rows = kept.layers.size() * static_cast<std::size_t>(kept.heads());
  const double share = 100.0 * static_cast<double>(kept.entries()) / (static_cast<double>(rows) * kept.n_prompt);
  std::string out = fmt::format(
      "set terminal {}\nset title {} noenhanced\nset xlabel 'position'\nset ylabel 'layer'\nset cblabel 'share kept'\n"
      "set cbrange [0:1]\nset palette defined (0 'white', 0.25 '#9ecae1', 1 '#08306b')\nset tics out\n"
      "set xrange [0:{}]\nset yrange [{}:0]\n"
      "plot '-' matrix using (($1+0.5)*{}):(($2+0.5)/{}.0):3 with image notitle\n",
      terminal, eval::quoted(fmt::format("{}: {:.1f} % of {} tokens kept", kept.spec, share, kept.n_prompt)),
      kept.n_prompt, kept.layers.size(), static_cast<double>(kept.n_prompt) / bins, kept.heads());
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
  write_file(path, eval::gnuplot(script(kept, terminal)));
}

}  // namespace winnow::cli
