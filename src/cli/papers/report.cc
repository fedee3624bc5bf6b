// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>

#include "cli/eval/records.h"
#include "cli/output.h"
#include "cli/papers/papers.h"
#include "papers/report/page.h"
#include "papers/report/text.h"
#include "winnow/error.h"

namespace winnow::cli {

namespace {

struct RawPapersReport {
  std::vector<std::string> folders;
  std::string output;
};

constexpr FileKind kPage{"<!doctype html>\n<html lang=\"en\"><head><meta charset", "a page of winnow papers report"};
constexpr FileKind kTable{"## ", "a table of winnow papers report"};

std::vector<papers::Sheet> sheets_of(const std::vector<std::string>& folders) {
  std::vector<papers::Sheet> out;
  for (const auto& folder : folders) {
    auto sheets = papers::sheets_in(folder);
    std::move(sheets.begin(), sheets.end(), std::back_inserter(out));
  }
  return papers::without_parts(std::move(out));
}

void report_recipe(const RawPapersReport& r) {
  const auto results = results_in(r.folders);
  if (r.output.empty()) return show(papers::to_markdown(results));
  const auto extension = std::filesystem::path(r.output).extension();
  if (extension != ".html" && extension != ".md")
    throw UsageError(fmt::format("-o {}: give a name that ends in .html or .md", r.output));
  const bool is_page = extension == ".html";
  const auto& kind = is_page ? kPage : kTable;
  check_replaceable(r.output, kind);
  write_file(r.output, is_page ? papers::to_page(results) : papers::to_markdown(results), kind);
}

}  // namespace

std::vector<papers::Result> results_in(const std::vector<std::string>& folders) {
  std::vector<papers::Result> out;
  const auto records = records_of(folders);
  for (auto& sheet : sheets_of(folders)) out.push_back(papers::result_of(std::move(sheet), records));
  return out;
}

void add_papers_report(CLI::App& papers) {
  auto* const command = papers.add_subcommand(
      "report", "compare the papers' figures with those of the records, and say which of the papers' orders hold");
  const auto raw = std::make_shared<RawPapersReport>();
  command->add_option("DIR", raw->folders, "folders of winnow papers run; shards of one run are allowed")->required();
  command->add_option("-o,--output", raw->output, "report.html or report.md (default: as .md, on stdout)");
  command->footer("Example:\n  winnow papers report results -o results.html");
  command->callback([raw] { report_recipe(*raw); });
}

}  // namespace winnow::cli
