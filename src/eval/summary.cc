// SPDX-License-Identifier: Apache-2.0
#include "eval/summary.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <tuple>

#include "winnow/error.h"
#include "winnow/recommended.h"

namespace winnow::eval {

namespace {

using Records = std::vector<const Record*>;
using Cells = std::map<std::pair<MethodKey, Column>, Cell>;
/// Records of a cell by task. The cell's mean is the mean of the tasks' means.
using ByTask = std::map<std::string, Records>;

template <class T>
void add_once(std::vector<T>& to, const T& value) {
  if (std::find(to.begin(), to.end(), value) == to.end()) to.push_back(value);
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

const char* unit_of_length(const std::string& task) {
  return task == "lines" ? "lines" : task == "kv-retrieval" ? "keys" : "tokens";
}

/// The full cache's scores, by measurement.
using FullScores = std::map<Key, double>;

FullScores full_scores_of(const std::vector<Record>& records) {
  FullScores out;
  for (const auto& record : records) {
    const auto method = method_of(record);
    if (method == MethodKey{"full", "", "f16"} && record.skipped.empty()) out[sample_key(record)] = record.score;
  }
  return out;
}

/// Mean score in units of the full cache's. Empty if the full cache's scores are unknown, all 0 or all 1 (the score
/// then says the same).
std::optional<double> of_full(const ByTask& by_task, const FullScores& full) {
  std::vector<double> tasks;
  bool is_perfect = true;
  for (const auto& [task, of_task] : by_task) {
    double own = 0;
    double most = 0;
    for (const Record* record : of_task) {
      if (!record->skipped.empty()) continue;
      const auto found = full.find(sample_key(*record));
      if (found == full.end()) return {};
      is_perfect = is_perfect && found->second == 1;
      if (found->second <= 0) continue;
      own += record->score;
      most += found->second;
    }
    if (most > 0) tasks.push_back(own / most);
  }
  if (tasks.empty() || is_perfect) return {};
  return std::accumulate(tasks.begin(), tasks.end(), 0.0) / static_cast<double>(tasks.size());
}

/// Means of the values that all records have: a value of some tasks does not describe the whole column.
std::map<std::string, double> values_of(const ByTask& by_task) {
  std::map<std::string, std::vector<double>> all;
  std::size_t records = 0;
  for (const auto& [task, of_task] : by_task) {
    for (const Record* record : of_task) {
      if (!record->skipped.empty()) continue;
      ++records;
      for (const auto& [name, value] : record->values) all[name].push_back(value);
      if (const auto time = reading_ms(*record)) all["read_ms"].push_back(*time);
    }
  }
  std::map<std::string, double> out;
  for (const auto& [name, values] : all) {
    if (values.size() == records)
      out[name] = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(records);
  }
  return out;
}

/// `tasks`: the number of tasks in the column.
Cell summary_cell(const ByTask& by_task, std::size_t tasks, const FullScores& full) {
  Cell out;
  std::vector<std::vector<double>> scores;
  for (const auto& [task, records] : by_task) {
    std::vector<double> of_task;
    for (const Record* record : records) {
      if (!record->skipped.empty()) {
        ++out.skipped;
        continue;
      }
      of_task.push_back(record->score);
      out.bytes_held += static_cast<double>(record->bytes_held);
      out.entries += record->entries;
    }
    out.samples += static_cast<int>(of_task.size());
    if (!of_task.empty()) scores.push_back(std::move(of_task));
  }
  if (scores.size() < tasks) return {{}, {}, 0, 0, 0, out.skipped};  // a mean over fewer tasks is not comparable
  const auto n = static_cast<double>(out.samples);
  out.score = mean_of_means(scores);
  out.bytes_held /= n;
  out.entries /= n;
  out.values = values_of(by_task);
  if (const auto share = of_full(by_task, full)) out.values["of_full"] = *share;
  return out;
}

/// Orders methods: no budget, then entries, shares and bytes, each ascending. An unreadable budget comes last.
std::pair<int, double> rank_of(const MethodKey& method) {
  if (method.budget.empty()) return {0, 0};
  const auto budget = budget_of(method);
  return budget ? std::pair(1 + static_cast<int>(budget->unit()), budget->amount()) : std::pair(9, 0.0);
}

std::vector<MethodKey> methods_in(const Records& records) {
  std::vector<MethodKey> out;
  std::set<MethodKey> known;
  for (const Record* record : records) {
    if (known.insert(method_of(*record)).second) out.push_back(method_of(*record));
  }
  const auto order = [](const MethodKey& m) { return std::tuple(rank_of(m), m.spec != "full" || m.kv_type != "f16"); };
  std::stable_sort(out.begin(), out.end(), [&](const MethodKey& a, const MethodKey& b) { return order(a) < order(b); });
  return out;
}

/// A table with the columns that `columns_of` names for each record.
Table table_of(const Records& records, const FullScores& full,
               const std::function<std::vector<Column>(const Record&)>& columns_of) {
  Table out;
  std::map<std::pair<MethodKey, Column>, ByTask> cells;
  std::map<Column, std::set<std::string>> tasks;
  Records used;
  for (const Record* record : records) {
    for (const auto& column : columns_of(*record)) {
      add_once(out.columns, column);
      cells[{method_of(*record), column}][record->key.task].push_back(record);
      tasks[column].insert(record->key.task);
      used.push_back(record);
    }
  }
  out.methods = methods_in(used);
  for (const auto& [key, by_task] : cells) out.cells[key] = summary_cell(by_task, tasks[key.second].size(), full);
  return out;
}

/// The benchmark of a task with a category: LongBench's tasks have no prefix.
std::string benchmark_of(const Record& record) {
  const auto slash = record.key.task.find('/');
  return slash == std::string::npos ? "LongBench" : record.key.task.substr(0, slash);
}

/// The categories of each benchmark.
using Benchmarks = std::map<std::string, std::set<std::string>>;

Benchmarks benchmarks_of(const Records& records) {
  Benchmarks out;
  for (const Record* record : records) {
    if (const std::string category = label_of(*record, "category"); !category.empty())
      out[benchmark_of(*record)].insert(category);
  }
  return out;
}

Column mean_of_tasks(const std::string& benchmark) { return {benchmark, "mean of tasks"}; }

Table categories_of(const Records& records, const FullScores& full, const Benchmarks& benchmarks) {
  auto out = table_of(records, full, [&](const Record& record) -> std::vector<Column> {
    const std::string category = label_of(record, "category");
    if (category.empty()) return {};
    const std::string benchmark = benchmark_of(record);
    if (benchmarks.at(benchmark).size() == 1) return {{category, ""}};
    return {{category, ""}, mean_of_tasks(benchmark)};
  });
  std::stable_partition(out.columns.begin(), out.columns.end(),
                        [](const Column& column) { return column.subset.empty(); });
  return out;
}

std::vector<Column> overall_of(const Benchmarks& benchmarks) {
  std::vector<Column> out;
  for (const auto& [benchmark, categories] : benchmarks)
    out.push_back(categories.size() == 1 ? Column{*categories.begin(), ""} : mean_of_tasks(benchmark));
  return out;
}

const char* length_class(int tokens) { return tokens < 4000 ? "0-4k" : tokens < 8000 ? "4-8k" : "8k+"; }

/// The tasks of a benchmark share one column.
Column length_of(const Record& record) {
  const bool has_category = !label_of(record, "category").empty();
  return {has_category ? benchmark_of(record) : column_of(record).task, length_class(record.prompt_tokens)};
}

Table lengths_of(const Records& records, const FullScores& full) {
  std::map<std::string, std::set<std::string>> classes;
  const auto is_made = [](const Record& record) {
    return is_number(label_of(record, "length")) || is_number(label_of(record, "depth"));
  };
  for (const Record* record : records) {
    if (!is_made(*record)) classes[length_of(*record).task].insert(length_of(*record).subset);
  }
  auto out = table_of(records, full, [&](const Record& record) -> std::vector<Column> {
    const Column column = length_of(record);
    if (is_made(record) || classes[column.task].size() < 2) return {};
    return {column};
  });
  std::sort(out.columns.begin(), out.columns.end());
  return out;
}

std::string without_numbers(std::string text) {
  std::erase_if(text, [](char c) { return c >= '0' && c <= '9'; });
  return text;
}

std::vector<Skipped> skipped_in(const Records& records) {
  std::vector<Skipped> out;
  std::map<std::string, std::size_t> places;
  for (const Record* record : records) {
    if (record->skipped.empty()) continue;
    const auto [place, is_new] = places.emplace(without_numbers(record->skipped), out.size());
    if (is_new) out.push_back({record->skipped});
    auto& found = out[place->second];
    ++found.records;
    found.same = found.same && found.why == record->skipped;
  }
  return out;
}

}  // namespace

MethodKey method_of(const Record& record) { return {record.key.spec, record.key.budget, record.key.kv_type}; }

std::string name_of(const MethodKey& method) {
  const auto label = method_label(method.spec);
  return method.kv_type == "f16" ? label : label + ", " + method.kv_type;
}

std::optional<Budget> budget_of(const MethodKey& method) {
  if (method.budget.empty()) return {};
  try {
    return Budget::parse(method.budget);
  } catch (const UsageError&) {
    return {};
  }
}

std::string name_of(const Column& column) {
  return column.subset.empty() ? column.task : column.task + " " + column.subset;
}

Column column_of(const Record& record) {
  const std::string length = label_of(record, "length");
  Column out{record.key.task, is_number(length) ? fmt::format("{} {}", length, unit_of_length(record.key.task)) : ""};
  if (const std::string kind = label_of(record, "kind"); !kind.empty())
    out.subset += (out.subset.empty() ? "" : ", ") + kind;
  return out;
}

Key sample_key(const Record& record) {
  Key out = record.key;
  out.spec.clear();
  out.budget.clear();
  out.kv_type.clear();
  out.calibration.clear();
  return out;
}

std::optional<double> reading_ms(const Record& record) {
  const bool is_own = record.group_size == 1 && record.timings.prefill_ms > 0 && !record.values.contains("ttft_ms");
  return is_own ? std::optional(record.timings.prefill_ms) : std::nullopt;
}

std::string with_unit(const std::string& label, const std::string& task) {
  if (label == "length") return fmt::format("length, {}", unit_of_length(task));
  return label == "depth" ? "depth, %" : label;
}

const Cell* Table::find(const MethodKey& method, const Column& column) const {
  const auto found = cells.find({method, column});
  return found == cells.end() ? nullptr : &found->second;
}

std::string protocol_of(const Key& key) {
  std::string out = key.protocol;
  if (key.max_prompt > 0) out += fmt::format("/max-prompt={}", key.max_prompt);
  if (!key.rope.empty()) out += "/rope=" + key.rope;
  return out;
}

std::vector<Summary> summarize(const std::vector<Record>& records) {
  std::vector<std::string> protocols;
  for (const auto& record : records) add_once(protocols, protocol_of(record.key));
  const auto full = full_scores_of(records);
  std::vector<Summary> out;
  for (const auto& protocol : protocols) {
    Records of;
    std::set<std::string> with_category;
    int beyond = 0;
    for (const auto& record : records) {
      if (protocol_of(record.key) != protocol) continue;
      of.push_back(&record);
      beyond += record.beyond_context > 0 ? 1 : 0;
      if (!label_of(record, "category").empty()) with_category.insert(record.key.task);
    }
    const auto benchmarks = benchmarks_of(of);
    out.push_back({protocol, beyond,
                   table_of(of, full, [](const Record& record) { return std::vector{column_of(record)}; }),
                   categories_of(of, full, benchmarks), overall_of(benchmarks), with_category, lengths_of(of, full),
                   skipped_in(of)});
  }
  return out;
}

}  // namespace winnow::eval
