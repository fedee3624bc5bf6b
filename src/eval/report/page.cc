// SPDX-License-Identifier: Apache-2.0
#include "eval/report/page.h"

#include <spdlog/fmt/fmt.h>

#include <set>

#include "base/counted.h"
#include "eval/report/drawn_page.h"
#include "eval/report/figures.h"
#include "eval/report/gnuplot.h"
#include "eval/report/html.h"
#include "eval/report/text.h"
#include "winnow/version.h"

namespace winnow::eval {

namespace {

std::string page_head(const std::vector<Record>& records, const std::vector<std::string>& folders,
                      const std::vector<Summary>& summaries) {
  std::set<std::string> models;
  std::set<std::string> samples;
  for (const auto& record : records) {
    models.insert(record.model_hash);
    samples.insert(record.key.task + "\n" + record.key.id);
  }
  std::string out = fmt::format(
      "<h1>Evaluation of KV-cache methods</h1>\n"
      "<p>{} of {}; {} {}; from {}; written by winnow {}.</p>\n<nav>",
      counted(records.size(), "record"), counted(samples.size(), "sample"), models.size() == 1 ? "model" : "models",
      escaped(listed(models)), escaped(listed({folders.begin(), folders.end()})), kVersion);
  for (const auto& summary : summaries) out += fmt::format("<a href=\"#{0}\">{0}</a> ", escaped(summary.protocol));
  return out + "</nav>\n";
}

void add_grids(const Summary& summary, DrawnPage& page) {
  const auto grids = grids_of(summary);
  if (grids.empty()) return;
  page.add(
      "<h3>Budgets</h3>\n<p>Means by budget. Methods are sorted by their average lead over the mean of all methods; "
      "the best of each budget is bold.</p>\n<div class=\"grids\">\n");
  for (const auto& grid : grids) page.add("<div>\n" + to_html(grid) + "</div>\n");
  page.add("</div>\n");
}

void add_tables(const Summary& summary, DrawnPage& page) {
  page.add(to_html(summary.tasks, "Tasks",
                   "Means. Scores are in percent, with the 95 % interval of bootstrap means; the best of each budget "
                   "is bold. MiB held are only given for methods with all samples."));
  page.add(
      to_html(summary.categories, "Categories", "Means of the tasks' means. Intervals resample each task separately."));
  page.add(to_html(summary.lengths, "Lengths", "Means by the prompt's length in tokens."));
}

void add_heat_maps(const std::vector<HeatMaps>& all, DrawnPage& page) {
  if (all.empty()) return;
  page.add(
      "<h3>Length and depth</h3>\n<p>Mean score in percent by the prompt's length and the depth of the answer in "
      "it.</p>\n");
  for (const auto& maps : all) {
    page.add(fmt::format("<h4>{}</h4>\n<div class=\"maps\">\n", escaped(maps.title)));
    for (const auto& map : maps.maps) page.add_figure(map);
    page.add("</div>\n");
  }
}

void add_plots(const std::vector<Record>& records, const Summary& summary, DrawnPage& page) {
  page.add_charts("Curves",
                  fmt::format("The {} methods with the best means are coloured; thin lines are the others. Only "
                              "methods with all samples are drawn against MiB held.",
                              Chart::kColoured),
                  curves_of(summary));
  page.add_charts("Perplexity",
                  "Perplexity of each span of tokens after the prompt; the methods with the lowest are coloured.",
                  perplexity_of(records, summary.protocol));
  page.add_charts("Long answers",
                  "Distance to the full cache in each span of the answer. A span ends at its point; the methods with "
                  "the lowest distance are coloured.",
                  divergence_of(records, summary.protocol));
  page.add_charts("Kept positions", "Shares of the kept entries in equal parts of the prompt.",
                  kept_places_of(records, summary.protocol));
  page.add_charts("Speed", "Speed by the prompt's length in tokens.", speed_of(records, summary.protocol));
  add_heat_maps(heat_maps_of(records, summary.protocol), page);
}

}  // namespace

std::string to_page(const std::vector<Record>& records, const std::vector<std::string>& folders) {
  const auto summaries = summarize(records);
  const bool draws = has_gnuplot();
  DrawnPage page("winnow eval report");
  page.add(page_head(records, folders, summaries));
  if (const auto notes = notes_on_methods(summaries); !notes.empty()) page.add("<p>" + escaped(notes) + "</p>\n");
  if (!draws) page.add(kNoGnuplot);
  for (const auto& summary : summaries) {
    page.add(fmt::format("<h2 id=\"{0}\">{0}</h2>\n", escaped(summary.protocol)));
    for (const auto& note : skipped_notes(summary)) page.add("<p>" + escaped(note) + "</p>\n");
    if (const auto note = beyond_note(summary); !note.empty()) page.add("<p>" + note + "</p>\n");
    add_grids(summary, page);
    add_tables(summary, page);
    if (draws) add_plots(records, summary, page);
  }
  return page.drawn();
}

}  // namespace winnow::eval
