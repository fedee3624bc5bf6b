#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>
#include <memory>

#include "base/log.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "eval/record_file.h"
#include "eval/summary.h"
#include "winnow/error.h"

namespace winnow::cli {

namespace {

struct Raw {
  std::vector<std::string> folders;
  std::string output;
};

std::vector<eval::Record> records_of(const std::vector<std::string>& folders) {
  std::vector<eval::Record> out;
  for (const auto& folder : folders) {
    const auto records = eval::read_records((std::filesystem::path(folder) / "records.jsonl").string());
    out.insert(out.end(), records.begin(), records.end());
  }
  return out;
}

void report(const Raw& r) {
  const auto tables = eval::summarize(records_of(r.folders));
  const auto extension = std::filesystem::path(r.output).extension();
  if (r.output.empty()) return write_stdout(eval::to_markdown(tables));
  if (extension != ".md" && extension != ".csv") throw UsageError(fmt::format("-o {}: give a name that ends in .md or .csv", r.output));
  write_file(r.output, extension == ".md" ? eval::to_markdown(tables) : eval::to_csv(tables));
}

/// The records of shards in one folder.
void merge(const Raw& r) {
  std::map<std::string, std::vector<eval::Record>> groups;
  std::vector<std::string> order;
  for (const auto& record : records_of(r.folders)) {
    auto& group = groups[record.group];
    if (group.empty()) order.push_back(record.group);
    const bool known = std::any_of(group.begin(), group.end(), [&](const eval::Record& other) { return other.key == record.key; });
    if (!known) group.push_back(record);
  }
  if (order.empty()) throw InputError("there are no records to merge");
  eval::RecordFile out(r.output, groups[order.front()].front().model_hash);
  if (!out.records().empty()) throw UsageError(fmt::format("{} has {} records: merge into a new folder", r.output, out.records().size()));
  for (const auto& name : order) out.add(groups[name]);
  log().info("{} records of {} folders in {}", out.records().size(), r.folders.size(), r.output);
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

/// What both folders have measured of the same samples in the same way.
void compare(const Raw& r) {
  const Scores a = scores_of(r.folders[0]);
  const Scores b = scores_of(r.folders[1]);
  std::map<std::string, Paired> rows;
  for (const auto& [key, score] : a) {
    const auto other = b.find(key);
    if (other == b.end()) continue;
    auto& row = rows[fmt::format("{} | {} | `{}`{}", key.task, key.protocol, key.spec, key.budget.empty() ? "" : " @ " + key.budget)];
    row.a.push_back(score);
    row.b.push_back(other->second);
  }
  if (rows.empty()) throw InputError(fmt::format("{} and {} have no sample in common", r.folders[0], r.folders[1]));
  std::string out =
      fmt::format("| task | protocol | method | samples | {} | {} | difference | p |\n|---|---|---|---:|---:|---:|---:|---:|\n",
                  r.folders[0], r.folders[1]);
  for (const auto& [name, row] : rows) {
    const double mean_a = eval::mean_of(row.a).value;
    const double mean_b = eval::mean_of(row.b).value;
    out += fmt::format("| {} | {} | {:.1f} | {:.1f} | {:+.1f} | {:.3f} |\n", name, row.a.size(), 100 * mean_a, 100 * mean_b,
                       100 * (mean_b - mean_a), eval::paired_p(row.a, row.b));
  }
  write_stdout(out);
}

}  // namespace

void add_eval_reports(CLI::App& eval) {
  const auto raw = std::make_shared<Raw>();
  auto* const reporting = eval.add_subcommand("report", "tables of the records of one or more folders");
  reporting->add_option("DIR", raw->folders, "folders with records")->required();
  reporting->add_option("-o,--output", raw->output, "report.md or report.csv (default: the first, on stdout)");
  reporting->callback([raw] { report(*raw); });

  auto* const merging = eval.add_subcommand("merge", "put the records of shards into one folder");
  merging->add_option("DIR", raw->folders, "folders with records")->required();
  merging->add_option("-o,--output", raw->output, "a new folder")->required();
  merging->callback([raw] { merge(*raw); });

  auto* const comparing = eval.add_subcommand("compare", "two folders, sample by sample, with the significance of the difference");
  comparing->add_option("DIR", raw->folders, "two folders with records")->required()->expected(2);
  comparing->callback([raw] { compare(*raw); });
}

}  // namespace winnow::cli
