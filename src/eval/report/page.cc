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

std::string listed(const std::set<std::string>& names) {
  std::string out;
  for (const auto& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

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
      "<h3>Budgets</h3>\n<p>Means by budget, the method first that is on average farthest ahead of the mean, the best "
      "with each budget in "
      "bold.</p>\n<div class=\"grids\">\n");
  for (const auto& grid : grids) page.add("<div>\n" + to_html(grid) + "</div>\n");
  page.add("</div>\n");
}

void add_tables(const Summary& summary, DrawnPage& page) {
  page.add(to_html(summary.tasks, "Tasks",
                   "Means, scores in percent with the interval of 95 % of bootstrap means; the best with each budget "
                   "in bold. MiB held are told of methods with all samples."));
  page.add(to_html(summary.categories, "Categories",
                   "Means of the tasks' means; intervals draw each task's samples by themselves."));
  page.add(to_html(summary.lengths, "Lengths", "By tokens of the prompt."));
}

void add_heat_maps(const std::vector<HeatMaps>& all, DrawnPage& page) {
  if (all.empty()) return;
  page.add(
      "<h3>Length and depth</h3>\n<p>Mean score in percent by the prompt's length and by how deep in it the answer "
      "stands.</p>\n");
  for (const auto& maps : all) {
    page.add(fmt::format("<h4>{}</h4>\n<div class=\"maps\">\n", escaped(maps.title)));
    for (const auto& map : maps.maps) page.add_figure(map);
    page.add("</div>\n");
  }
}

void add_plots(const std::vector<Record>& records, const Summary& summary, DrawnPage& page) {
  page.add_charts(
      "Curves",
      fmt::format("The {} best methods by their mean height; the others are the thin lines. Only methods with all "
                  "samples are drawn against MiB held.",
                  Chart::kColoured),
      curves_of(summary));
  page.add_charts("Perplexity", "Of each span of tokens after the prompt; the lowest in colour.",
                  perplexity_of(records, summary.protocol));
  page.add_charts(
      "Long answers",
      "Distance to the full cache in each span of the answer, which ends at the point; the lowest in colour.",
      divergence_of(records, summary.protocol));
  page.add_charts("Kept positions",
                  "Where in the prompt the entries stand that are kept, in equal parts of the prompt.",
                  kept_places_of(records, summary.protocol));
  page.add_charts("Speed", "Against the tokens of the prompt.", speed_of(records, summary.protocol));
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
