// SPDX-License-Identifier: Apache-2.0
#include "eval/report/drawn_page.h"

#include <spdlog/fmt/fmt.h>

#include "eval/report/gnuplot.h"
#include "eval/report/html.h"
#include "eval/report/page.h"
#include "eval/report/svg.h"

namespace winnow::eval {

namespace {

/// Placeholder of a picture until all are drawn. Escaped text does not contain this byte.
std::string placeholder(std::size_t number) { return fmt::format("\x01{}\x01", number); }

}  // namespace

const char* const kNoGnuplot =
    "<p>There are no plots, because gnuplot was not installed when this page was written. On Debian, install "
    "gnuplot-nox.</p>\n";

DrawnPage::DrawnPage(const std::string& title)
    : html_(fmt::format("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
                        "content=\"width=device-width, initial-scale=1\"><title>{}</title><style>{}</style></head>"
                        "<body>\n",
                        escaped(title), std::string(kColours) + kStyle)) {}

void DrawnPage::add_figure(const std::string& title, const std::string& script) {
  html_ +=
      fmt::format("<figure><figcaption>{}</figcaption>{}</figure>\n", escaped(title), placeholder(scripts_.size()));
  scripts_.push_back(script);
  titles_.push_back(title);
}

void DrawnPage::add_charts(const std::string& title, const std::string& says, const std::vector<Chart>& charts) {
  if (charts.empty()) return;
  add(fmt::format("<h3>{}</h3>\n<p>{}</p>\n<div class=\"charts\">\n", escaped(title), escaped(says)));
  for (const auto& chart : charts) add_figure(chart);
  add("</div>\n");
}

std::string DrawnPage::drawn() const {
  const auto svgs = gnuplot_svgs(scripts_);
  std::string out;
  std::size_t at = 0;
  for (std::size_t i = 0; i < svgs.size(); ++i) {
    const auto place = html_.find(placeholder(i), at);
    out += html_.substr(at, place - at) + embedded(svgs[i], i, titles_[i]);
    at = place + placeholder(i).size();
  }
  return out + html_.substr(at) + "</body></html>\n";
}

}  // namespace winnow::eval
