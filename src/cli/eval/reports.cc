// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "base/counted.h"
#include "base/log.h"
#include "cli/commands.h"
#include "cli/eval/records.h"
#include "cli/output.h"
#include "eval/process_folders.h"
#include "eval/record_file.h"
#include "eval/report/page.h"
#include "eval/report/text.h"
#include "eval/statistics.h"
#include "winnow/error.h"
#include "winnow/recommended.h"

namespace winnow::cli {

namespace {

struct RawReport {
  std::vector<std::string> folders;
  std::string output;
};

using Records = std::vector<eval::Record>;

/// A format of reports: its file's extension, its first bytes and its contents.
struct ReportForm {
  const char* extension;
  FileKind kind;
  std::string (*text)(const Records& records, const RawReport& r);
};

constexpr ReportForm kForms[] = {
    {".html",
     {"<!doctype html>\n<html lang=\"en\"><head><meta charset", "a page of winnow eval report"},
     [](const Records& records, const RawReport& r) { return eval::to_page(records, r.folders); }},
    {".md",
     {"question-a", "a table of winnow eval report"},
     [](const Records& records, const RawReport&) { return eval::to_markdown(eval::summarize(records)); }},
    {".csv",
     {"protocol,task,part,", "a table of winnow eval report"},
     [](const Records& records, const RawReport&) { return eval::to_csv(eval::summarize(records)); }},
};

void report_records(const RawReport& r) {
  if (r.output.empty()) return show(tables_of(r.folders));
  const auto* const form = std::find_if(std::begin(kForms), std::end(kForms), [&](const ReportForm& f) {
    return std::filesystem::path(r.output).extension() == f.extension;
  });
  if (form == std::end(kForms))
    throw UsageError(fmt::format("-o {}: give a name that ends in .html, .md or .csv", r.output));
  check_replaceable(r.output, form->kind);
  write_file(r.output, form->text(records_of(r.folders), r), form->kind);
}

using RecordGroup = std::vector<eval::Record>;

/// Groups of a shard, in its order; those of one sample and protocol are together.
using Samples = std::vector<std::vector<RecordGroup>>;

Samples samples_of(const std::string& folder) {
  Samples out;
  const auto same = [](const eval::Key& a, const eval::Key& b) {
    return a.task == b.task && a.id == b.id && a.protocol == b.protocol;
  };
  for (auto& group : eval::groups_of(records_of({folder}))) {
    if (out.empty() || !same(out.back().front().front().key, group.front().key)) out.emplace_back();
    out.back().push_back(std::move(group));
  }
  return out;
}

/// Writes the records of shards to one folder, in the order of a single process: a sample of each shard in rotation.
void merge(const RawReport& r) {
  std::vector<Samples> shards;
  std::size_t most = 0;
  for (const auto& folder : r.folders) {
    shards.push_back(samples_of(folder));
    most = std::max(most, shards.back().size());
  }
  if (most == 0) throw InputError("there are no records to merge");
  const auto filled =
      std::find_if(shards.begin(), shards.end(), [](const Samples& samples) { return !samples.empty(); });
  eval::RecordFile out(r.output, filled->front().front().front().model_hash);
  if (!out.records().empty())
    throw UsageError(
        fmt::format("{} already has {}: merge into a new folder", r.output, counted(out.records().size(), "record")));
  std::set<std::string> known;
  for (std::size_t i = 0; i < most; ++i) {
    for (const auto& samples : shards) {
      if (i >= samples.size()) continue;
      for (const auto& group : samples[i]) {
        if (known.insert(group.front().group).second) out.add(group);
      }
    }
  }
  log().info("{} of {} in {}", counted(out.records().size(), "record"), counted(r.folders.size(), "folder"), r.output);
}

using Scores = std::map<eval::Key, double>;

Scores scores_of(const std::string& folder) {
  Scores out;
  for (const auto& record : records_of({folder})) {
    if (record.skipped.empty()) out[record.key] = record.score;
  }
  return out;
}

struct Paired {
  std::vector<double> a;
  std::vector<double> b;
};

/// Compares the samples that both folders have measured in the same way.
void compare(const RawReport& r) {
  const Scores a = scores_of(r.folders[0]);
  const Scores b = scores_of(r.folders[1]);
  std::map<std::string, Paired> rows;
  std::vector<std::string> specs;
  for (const auto& [key, score] : a) {
    const auto other = b.find(key);
    if (other == b.end()) continue;
    auto& row = rows[fmt::format("{} | {} | `{}`{}", key.task, eval::protocol_of(key), method_label(key.spec),
                                 key.budget.empty() ? "" : " @ " + key.budget)];
    row.a.push_back(score);
    row.b.push_back(other->second);
    specs.push_back(key.spec);
  }
  if (rows.empty()) throw InputError(fmt::format("{} and {} have no sample in common", r.folders[0], r.folders[1]));
  std::string out = fmt::format(
      "| task | protocol | method | samples | {} | {} | difference | p |\n|---|---|---|---:|---:|---:|---:|---:|\n",
      r.folders[0], r.folders[1]);
  for (const auto& [name, row] : rows) {
    const double mean_a = eval::mean_of(row.a).value;
    const double mean_b = eval::mean_of(row.b).value;
    out += fmt::format("| {} | {} | {:.1f} | {:.1f} | {:+.1f} | {:.3f} |\n", name, row.a.size(), 100 * mean_a,
                       100 * mean_b, 100 * (mean_b - mean_a), eval::paired_p(row.a, row.b));
  }
  if (const auto notes = label_notes(specs); !notes.empty()) out += "\n" + notes + "\n";
  show(out);
}

}  // namespace

void add_eval_reports(CLI::App& eval) {
  const auto raw = std::make_shared<RawReport>();
  auto* const reporting =
      eval.add_subcommand("report", "make tables and plots from the records of one or more folders");
  reporting->add_option("DIR", raw->folders, "folders with records")->required();
  reporting->add_option("-o,--output", raw->output,
                        "report.html, report.md or report.csv (default: as .md, on stdout)");
  reporting->footer("Example:\n  winnow eval report results -o results.html");
  reporting->callback([raw] { report_records(*raw); });

  auto* const merging = eval.add_subcommand("merge", "merge the records of shards into one folder");
  merging->add_option("DIR", raw->folders, "folders with records")->required();
  merging->add_option("-o,--output", raw->output, "a new folder")->required();
  merging->footer("Example:\n  winnow eval merge shard0 shard1 -o results");
  merging->callback([raw] { merge(*raw); });

  auto* const comparing =
      eval.add_subcommand("compare", "compare two folders sample by sample, with the significance of the difference");
  comparing->add_option("DIR", raw->folders, "two folders with records")->required()->expected(2);
  comparing->footer("Example:\n  winnow eval compare results others");
  comparing->callback([raw] { compare(*raw); });
}

}  // namespace winnow::cli
