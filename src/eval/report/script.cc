// SPDX-License-Identifier: Apache-2.0
#include "eval/report/script.h"

#include <spdlog/fmt/fmt.h>

#include "eval/report/gnuplot.h"

namespace winnow::eval {

std::string series_colour(std::size_t i) { return fmt::format("#0103{:02x}", i + 1); }

std::string plain(const std::string& text) {
  std::string out = text;
  for (char& c : out) {
    if (c == '<' || c == '>' || c == '&') c = '?';
  }
  return gnuplot_text(out);
}

std::string begin_script(int width, int height, int font) {
  return fmt::format(
      "reset\nset terminal svg size {0},{1} dynamic noenhanced font 'sans-serif,{2}'\nset encoding utf8\n"
      "set border 3 lc rgb '{3}'\nset tics nomirror out scale 0.5 textcolor rgb '{3}'\nset key textcolor rgb '{3}'\n",
      width, height, font, kInk);
}

std::string axis_title(const char* name, const std::string& title) {
  return fmt::format("set {}label {} textcolor rgb '{}'\n", name, plain(title), kInk);
}

}  // namespace winnow::eval
