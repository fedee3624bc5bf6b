// SPDX-License-Identifier: Apache-2.0
#include "eval/report/svg.h"

#include <spdlog/fmt/fmt.h>

#include "eval/report/chart.h"
#include "eval/report/html.h"
#include "eval/report/page.h"

namespace winnow::eval {

namespace {

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

/// Replaces both spellings of a colour: gnuplot pads the numbers only in some places.
void replace_colour(std::string& svg, int red, int green, int blue, const std::string& variable) {
  replace_all(svg, fmt::format("rgb({:3},{:4},{:4})", red, green, blue), variable);
  replace_all(svg, fmt::format("rgb({},{},{})", red, green, blue), variable);
}

void cut_out(std::string& text, const std::string& from, const std::string& to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    const auto end = text.find(to, at);
    if (end == std::string::npos) return;
    text.erase(at, end + to.size() - at);
  }
}

/// Removes empty groups and white space between elements.
void squeeze(std::string& svg) {
  std::string out;
  bool blank = false;
  for (const char c : svg) {
    const bool is_space = c == '\n' || c == '\t' || c == ' ';
    if (!(is_space && blank)) out += is_space ? ' ' : c;
    blank = is_space;
  }
  replace_all(out, "> <", "><");
  for (auto at = out.find("></g>"); at != std::string::npos; at = out.find("></g>", at)) {
    const auto open = out.rfind('<', at);
    if (out.compare(open, 3, "<g ") == 0) {
      out.erase(open, at + 5 - open);
      at = open;
    } else {
      at += 5;
    }
  }
  svg = std::move(out);
}

}  // namespace

std::string embedded(std::string svg, std::size_t number, const std::string& title) {
  cut_out(svg, "<desc>", "</desc>");
  cut_out(svg, "<filter", "</filter>");
  cut_out(svg, "<rect x=\"0\" y=\"0\"", "/>");
  replace_all(svg, "<title>Gnuplot</title>", "<title>" + escaped(title) + "</title>");
  for (const char* colour : {"black", "white", "gray"}) replace_all(svg, fmt::format(" color=\"{}\"", colour), "");
  replace_colour(svg, 1, 2, 3, "var(--ink)");
  replace_colour(svg, 1, 2, 4, "var(--grid)");
  for (std::size_t i = 0; i < Chart::kColoured; ++i)
    replace_colour(svg, 1, 3, static_cast<int>(i) + 1, fmt::format("var(--s{})", i));
  if (svg.find("xlink:href='#gpPt", svg.find("</defs>")) == std::string::npos) cut_out(svg, "<defs>", "</defs>");
  replace_all(svg, "gpPt", fmt::format("g{}p", number));
  replace_all(svg, "gpDot", fmt::format("g{}d", number));
  replace_all(svg, "gnuplot_", fmt::format("g{}_", number));
  squeeze(svg);
  return svg;
}

std::string standalone(std::string svg, const std::string& title, const std::string& description) {
  std::string out = embedded(std::move(svg), 0, title);
  const std::string end = "</title>";
  const auto at = out.find(end);
  out.insert(at + end.size(), fmt::format("<desc>{}</desc><style>{}</style><rect width=\"100%\" height=\"100%\" "
                                          "fill=\"var(--paper)\"/>",
                                          escaped(description), kColours));
  return out + "\n";
}

}  // namespace winnow::eval
