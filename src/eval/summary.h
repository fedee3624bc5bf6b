// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "eval/record.h"
#include "eval/statistics.h"
#include "winnow/spec.h"

namespace winnow::eval {

/// Identifies a row of a table.
struct MethodKey {
  std::string spec;
  std::string budget;  ///< empty: none
  std::string kv_type;
  auto operator<=>(const MethodKey&) const = default;
};

MethodKey method_of(const Record& record);
/// The spec, followed by the KV type if it is not f16.
std::string name_of(const MethodKey& method);
/// Empty if there is no budget, or one that this version cannot read.
std::optional<Budget> budget_of(const MethodKey& method);

/// A column of a table: a task, or a subset of its samples.
struct Column {
  std::string task;
  /// "4000 tokens, words": the samples' labels "length" (if it is a number) and "kind", or empty
  std::string subset;
  auto operator<=>(const Column&) const = default;
};

std::string name_of(const Column& column);
/// The column of a record.
Column column_of(const Record& record);

/// The key of a record's sample: that of all methods measured on it.
Key sample_key(const Record& record);

/// Milliseconds of reading, if the record's method was the only one that read the prompt and the task has no time of
/// its own.
std::optional<double> reading_ms(const Record& record);

/// A label with its unit: "length, tokens", "depth, %".
std::string with_unit(const std::string& label, const std::string& task);

/// One method in one column.
struct Cell {
  Mean score;
  /// Means of the values that all records have, and of two more: "read_ms", the time of reading, if all records were
  /// read with this method alone; "of_full", the mean score in units of the full cache's, over the samples on which
  /// that is above 0, unless it is 1 on all.
  std::map<std::string, double> values;
  double bytes_held = 0;  ///< mean
  double entries = 0;     ///< mean, per KV head
  int samples = 0;
  int skipped = 0;
};

struct Table {
  std::vector<Column> columns;
  std::vector<MethodKey> methods;  ///< those without a budget first, then by budget
  std::map<std::pair<MethodKey, Column>, Cell> cells;

  /// nullptr if it was not measured.
  const Cell* find(const MethodKey& method, const Column& column) const;
};

/// Records without a score, for reasons that differ at most in their numbers.
struct Skipped {
  std::string why;  ///< the reason of the first
  int records = 0;
  bool same = true;  ///< all have the same numbers
};

/// The results of one protocol.
struct Summary {
  std::string protocol;    ///< as protocol_of() names it
  int beyond_context = 0;  ///< records of prompts that are longer than the model's context
  Table tasks;
  Table categories;  ///< means over the tasks of each category (records' label), and of a whole benchmark with several
                     ///< categories
  std::vector<Column> overall;          ///< columns of `categories` that stand for a whole benchmark
  std::set<std::string> with_category;  ///< tasks that have a category
  Table lengths;  ///< by prompt tokens, in LongBench-E's classes; empty if each task's prompts are of one class
  std::vector<Skipped> skipped;  ///< by reason, in the order of the records

  /// Calls each(Table, Column) for the headline results: benchmarks with categories as a whole, then the other tasks.
  template <class Each>
  void for_each_headline(const Each& each) const {
    for (const auto& column : overall) each(categories, column);
    for (const auto& column : tasks.columns) {
      if (!with_category.contains(column.task)) each(tasks, column);
    }
  }
};

/// How a prompt was read: the protocol, then the user's options that change it (--max-prompt, RoPE). A table holds only
/// records that were read in the same way.
std::string protocol_of(const Key& key);

/// One summary for each protocol of the records.
std::vector<Summary> summarize(const std::vector<Record>& records);

}  // namespace winnow::eval
