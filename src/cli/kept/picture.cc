// SPDX-License-Identifier: Apache-2.0
#include "cli/kept/picture.h"

#include <langinfo.h>
#include <spdlog/fmt/fmt.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "base/as_size.h"
#include "base/counted.h"

namespace winnow::cli {

namespace {

constexpr int kDefaultWidth = 80;
constexpr int kLeastBins = 10;
constexpr const char* kBlocks[] = {" ", "░", "▒", "▓", "█"};
constexpr const char* kAscii[] = {" ", ".", ":", "+", "#"};

int terminal_width() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char* const columns = std::getenv("COLUMNS");
  const int width = columns != nullptr ? std::atoi(columns) : 0;
  return width > 0 ? std::min(width, 1000) : kDefaultWidth;
}

/// A blank for nothing, otherwise one shade for each quarter.
const char* shade(double density, Canvas::Shades shades) {
  const auto step = static_cast<std::size_t>(std::clamp(std::ceil(density * 4), 0.0, 4.0));
  return shades == Canvas::Shades::blocks ? kBlocks[step] : kAscii[step];
}

std::string head_line(const Kept& kept) {
  const auto chosen = kept.chosen();
  const auto lanes = chosen.size() * as_size(kept.heads());
  std::size_t least = kept.layers[chosen.front()].front().size();
  std::size_t most = least;
  for (const auto layer : chosen) {
    for (const auto& head : kept.layers[layer]) {
      least = std::min(least, head.size());
      most = std::max(most, head.size());
    }
  }
  const double mean = static_cast<double>(kept.entries()) / static_cast<double>(lanes);
  return fmt::format("{}: {}, {:.1f} entries per head ({} to {}), {:.1f} % kept in {} of {}\n",
                     kept.spec.empty() ? "unnamed" : kept.spec, counted(kept.n_prompt, "token"), mean, least, most,
                     100 * mean / kept.n_prompt, counted(chosen.size(), "layer"), counted(kept.heads(), "KV head"));
}

/// The text at the end of a row, seven columns wide.
std::string share_of(const Kept& kept, std::size_t layer, std::size_t head) {
  if (!kept.is_chosen(layer)) return " window";
  return fmt::format("{:5.1f} %", 100.0 * static_cast<double>(kept.layers[layer][head].size()) / kept.n_prompt);
}

}  // namespace

Canvas terminal_canvas() {
  std::setlocale(LC_CTYPE, "");
  const bool blocks = std::strcmp(nl_langinfo(CODESET), "UTF-8") == 0 && std::getenv("NO_COLOR") == nullptr;
  return {terminal_width(), blocks ? Canvas::Shades::blocks : Canvas::Shades::ascii};
}

std::string picture(const Kept& kept, const Canvas& canvas) {
  std::string out = head_line(kept);
  const std::string label = fmt::format("{}.{}", kept.layers.size() - 1, kept.heads() - 1);
  const int around = static_cast<int>(label.size()) + static_cast<int>(std::strlen(" || 100.0 %"));
  const int bins = std::clamp(canvas.width - around, std::min(kLeastBins, kept.n_prompt), kept.n_prompt);
  for (std::size_t layer = 0; layer < kept.layers.size(); ++layer) {
    for (std::size_t head = 0; head < kept.layers[layer].size(); ++head) {
      const auto& positions = kept.layers[layer][head];
      out += fmt::format("{:>{}} |", fmt::format("{}.{}", layer, head), label.size());
      for (const double density : densities(positions, kept.n_prompt, bins)) out += shade(density, canvas.shades);
      out += fmt::format("| {}\n", share_of(kept, layer, head));
    }
  }
  out += fmt::format("rows: layer.head; columns: {:.1f} tokens; kept:", static_cast<double>(kept.n_prompt) / bins);
  for (int quarter = 1; quarter <= 4; ++quarter)
    out += fmt::format(" {} to {} %", shade(quarter / 4.0, canvas.shades), 25 * quarter);
  out += ", blank none\n";
  if (!kept.windows.empty())
    out += "window: the layer keeps the last tokens, the only ones that it sees, and is not compressed\n";
  return out;
}

}  // namespace winnow::cli
