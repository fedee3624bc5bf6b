// SPDX-License-Identifier: Apache-2.0
#include "papers/cells.h"

#include <algorithm>
#include <set>

#include "eval/group.h"

namespace winnow::papers {

namespace {

/// A record's figure by its name; "" is the score.
std::optional<double> figure(const eval::Record& record, const std::string& name) {
  if (name.empty()) return record.score;
  if (name == "bytes_held") return static_cast<double>(record.bytes_held);
  if (name == "entries") return record.entries;
  const auto found = record.values.find(name);
  return found == record.values.end() ? std::nullopt : std::optional(found->second);
}

bool is_of_method(const eval::Key& key, const CellKey& cell) {
  const auto& method = cell.method;
  return key.spec == method.spec() && key.budget == (method.budget() ? method.budget()->print() : "") &&
         key.kv_type == method.kv_type().print() && key.protocol == eval::name_of(cell.protocol);
}

/// True if the prompt fits into the budget.
bool keeps_all(const eval::Record& record) {
  if (record.key.budget.empty()) return false;
  const auto budget = Budget::parse(record.key.budget);
  return budget.unit() == Budget::Unit::entries && budget.amount() >= record.prompt_tokens;
}

}  // namespace

bool has_labels(const Labels& all, const Labels& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& label) {
    const auto found = all.find(label.first);
    return found != all.end() && found->second == label.second;
  });
}

std::optional<eval::Mean> mean_of(const Cell& cell) {
  std::vector<std::vector<double>> groups;
  for (const auto& [task, samples] : cell.values) {
    auto& group = groups.emplace_back();
    for (const auto& [id, value] : samples) group.push_back(value.value);
  }
  if (groups.empty()) return {};
  return eval::mean_of_means(groups);
}

std::optional<Difference> difference(const Cell& a, const Cell& b) {
  Difference out;
  std::vector<std::vector<double>> groups;
  for (const auto& [task, samples] : a.values) {
    const auto others = b.values.find(task);
    if (others == b.values.end()) continue;
    std::vector<double> group;
    for (const auto& [id, value] : samples) {
      const auto other = others->second.find(id);
      if (other == others->second.end()) continue;
      group.push_back(value.value - other->second.value);
      const bool is_full = value.is_full || other->second.is_full;
      out.same += is_full && value.record == other->second.record ? 1 : 0;
    }
    out.samples += static_cast<int>(group.size());
    if (!group.empty()) groups.push_back(std::move(group));
  }
  if (groups.empty()) return {};
  out.mean = eval::mean_of_means(groups);
  return out;
}

Found::Found(const Sheet& sheet, const std::vector<eval::Record>& records) : sheet_(sheet) {
  for (const auto& record : records) {
    if (record.model_hash != sheet.model_hash || record.key.rope != sheet.rope) continue;
    by_task_[record.key.task].push_back(&record);
    by_key_[record.key] = &record;
  }
}

const eval::Record* Found::full(const eval::Record& record) const {
  eval::Key key = record.key;
  key.spec = Spec().print();
  key.budget.clear();
  const auto found = by_key_.find(key);
  return found == by_key_.end() || !found->second->skipped.empty() ? nullptr : found->second;
}

const eval::Record* Found::shown(const eval::Record& record) const {
  if (record.skipped.empty()) return &record;
  return keeps_all(record) ? full(record) : nullptr;
}

std::vector<const Planned*> Found::planned(const CellKey& key) const {
  std::vector<const Planned*> out;
  for (const auto& line : sheet_.planned) {
    const bool is_meant = line.measure == key.measure->name && has_labels(line.labels, key.labels) &&
                          std::find(key.tasks.begin(), key.tasks.end(), line.task) != key.tasks.end();
    if (is_meant) out.push_back(&line);
  }
  return out;
}

std::vector<const eval::Record*> Found::records(const CellKey& key, const Planned& planned) const {
  std::vector<const eval::Record*> out;
  const auto all = by_task_.find(planned.record);
  if (all == by_task_.end()) return out;
  const std::set<std::string> ids(planned.ids.begin(), planned.ids.end());
  for (const auto* record : all->second) {
    if (is_of_method(record->key, key) && record->key.max_prompt == planned.max_prompt && ids.contains(record->key.id))
      out.push_back(record);
  }
  return out;
}

Cell Found::cell(const CellKey& key) const {
  Cell out;
  for (const auto* line : planned(key)) {
    out.planned += static_cast<int>(line->ids.size());
    for (const auto* record : records(key, *line)) {
      ++out.measured;
      const auto* const source = shown(*record);
      const auto value = source == nullptr ? std::nullopt : figure(*source, key.value);
      if (value) {
        out.values[line->task][record->key.id + "\n" + record->key.prompt_hash] = {*value, source, source != record};
        out.full += source == record ? 0 : 1;
      } else {
        ++out.skipped;
      }
    }
  }
  return out;
}

std::vector<std::vector<double>> Found::series(const CellKey& key) const {
  std::vector<std::vector<double>> out;
  for (const auto* line : planned(key)) {
    for (const auto* record : records(key, *line)) {
      const auto* const source = shown(*record);
      if (source == nullptr) continue;
      const auto found = source->series.find(key.series);
      if (found != source->series.end()) out.push_back(found->second);
    }
  }
  return out;
}

}  // namespace winnow::papers
