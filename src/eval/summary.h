#pragma once

#include <map>
#include <string>
#include <vector>

#include "eval/record.h"
#include "eval/statistics.h"

namespace winnow::eval {

/// What tells one column of a table from another.
struct Method {
  std::string spec;
  std::string budget;  ///< empty: none
  std::string kv_type;
  auto operator<=>(const Method&) const = default;
};

/// One method on one task with one protocol.
struct Cell {
  Mean score;
  std::map<std::string, double> values;  ///< means of the records' values
  double bytes_held = 0;                 ///< mean
  double entries = 0;                    ///< mean, per KV head
  int samples = 0;
  int skipped = 0;
};

/// Methods by tasks.
struct Table {
  std::string protocol;
  std::vector<std::string> tasks;                             ///< in the order of the records
  std::vector<Method> methods;                                ///< likewise
  std::map<std::pair<Method, std::string>, Cell> cells;       ///< by method and task
  std::map<std::pair<Method, std::string>, Cell> categories;  ///< by method and the records' label "category"
};

/// One table for each protocol that is there.
std::vector<Table> summarize(const std::vector<Record>& records);

std::string to_markdown(const std::vector<Table>& tables);
/// protocol,task,spec,budget,kv_type,samples,skipped,score,low,high,entries,bytes_held and the tasks' own values as key=value.
std::string to_csv(const std::vector<Table>& tables);

}  // namespace winnow::eval
