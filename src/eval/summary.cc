#include "eval/summary.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace winnow::eval {

namespace {

template <class T>
void add_once(std::vector<T>& to, const T& value) {
  if (std::find(to.begin(), to.end(), value) == to.end()) to.push_back(value);
}

Cell cell_of(const std::vector<const Record*>& records) {
  Cell out;
  std::vector<double> scores;
  for (const Record* record : records) {
    if (!record->skipped.empty()) {
      ++out.skipped;
      continue;
    }
    scores.push_back(record->score);
    out.bytes_held += static_cast<double>(record->bytes_held);
    out.entries += record->entries;
    for (const auto& [name, value] : record->values) out.values[name] += value;
  }
  out.samples = static_cast<int>(scores.size());
  if (scores.empty()) return out;
  const auto n = static_cast<double>(scores.size());
  out.score = mean_of(scores);
  out.bytes_held /= n;
  out.entries /= n;
  for (auto& [name, value] : out.values) value /= n;
  return out;
}

using Grouped = std::map<std::pair<Method, std::string>, std::vector<const Record*>>;

std::map<std::pair<Method, std::string>, Cell> cells_of(const Grouped& groups) {
  std::map<std::pair<Method, std::string>, Cell> out;
  for (const auto& [key, records] : groups) out[key] = cell_of(records);
  return out;
}

Table table_of(const std::string& protocol, const std::vector<Record>& records) {
  Table out;
  out.protocol = protocol;
  Grouped by_task;
  Grouped by_category;
  for (const auto& record : records) {
    if (record.key.protocol != protocol) continue;
    const Method method{record.key.spec, record.key.budget, record.key.kv_type};
    add_once(out.methods, method);
    add_once(out.tasks, record.key.task);
    by_task[{method, record.key.task}].push_back(&record);
    if (const auto category = record.labels.find("category"); category != record.labels.end())
      by_category[{method, category->second}].push_back(&record);
  }
  out.cells = cells_of(by_task);
  out.categories = cells_of(by_category);
  return out;
}

std::string name_of(const Method& method) {
  std::string out = "`" + method.spec + "`";
  if (!method.budget.empty()) out += " @ " + method.budget;
  if (method.kv_type != "f16") out += ", " + method.kv_type;
  return out;
}

/// Of a task, over all methods with a budget: the full cache is no rival.
double best_score(const Table& table, const std::string& task) {
  double out = -1;
  for (const auto& [key, cell] : table.cells) {
    if (key.second == task && !key.first.budget.empty() && cell.samples > 0) out = std::max(out, cell.score.value);
  }
  return out;
}

std::string in_words(const Cell& cell, double best) {
  if (cell.samples == 0) return cell.skipped > 0 ? "skipped" : "";
  std::string out = fmt::format("{:.1f}", 100 * cell.score.value);
  if (cell.score.value == best) out = "**" + out + "**";
  out += fmt::format(" ({:.1f} to {:.1f})", 100 * cell.score.low, 100 * cell.score.high);
  if (const auto kl = cell.values.find("kl"); kl != cell.values.end()) out += fmt::format(", {:.3f} nats", kl->second);
  return out;
}

}  // namespace

std::vector<Table> summarize(const std::vector<Record>& records) {
  std::vector<std::string> protocols;
  for (const auto& record : records) add_once(protocols, record.key.protocol);
  std::vector<Table> out;
  for (const auto& protocol : protocols) out.push_back(table_of(protocol, records));
  return out;
}

std::string to_markdown(const std::vector<Table>& tables) {
  std::string out;
  for (const auto& table : tables) {
    out += fmt::format("{}{}: mean of 100 × score (95 % of bootstrap means), the best of those with a budget in bold\n\n| method |",
                       out.empty() ? "" : "\n", table.protocol);
    for (const auto& task : table.tasks) out += fmt::format(" {} |", task);
    out += "\n|---|";
    for (std::size_t i = 0; i < table.tasks.size(); ++i) out += "---:|";
    for (const auto& method : table.methods) {
      out += fmt::format("\n| {} |", name_of(method));
      for (const auto& task : table.tasks) {
        const auto cell = table.cells.find({method, task});
        out += fmt::format(" {} |", cell == table.cells.end() ? "" : in_words(cell->second, best_score(table, task)));
      }
    }
    out += "\n";
  }
  return out;
}

std::string to_csv(const std::vector<Table>& tables) {
  std::string out = "protocol,task,spec,budget,kv_type,samples,skipped,score,low,high,entries,bytes_held,values\n";
  for (const auto& table : tables) {
    for (const auto& task : table.tasks) {
      for (const auto& method : table.methods) {
        const auto found = table.cells.find({method, task});
        if (found == table.cells.end()) continue;
        const Cell& c = found->second;
        std::string values;
        for (const auto& [name, value] : c.values) values += fmt::format("{}{}={:.6g}", values.empty() ? "" : " ", name, value);
        out += fmt::format("{},{},\"{}\",{},{},{},{},{:.6f},{:.6f},{:.6f},{:.1f},{:.0f},{}\n", table.protocol, task, method.spec,
                           method.budget, method.kv_type, c.samples, c.skipped, c.score.value, c.score.low, c.score.high, c.entries,
                           c.bytes_held, values);
      }
    }
  }
  return out;
}

}  // namespace winnow::eval
