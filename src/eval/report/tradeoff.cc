// SPDX-License-Identifier: Apache-2.0
#include "eval/report/tradeoff.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/counted.h"
#include "eval/report/text.h"
#include "winnow/error.h"

namespace winnow::eval {

namespace {

const MethodKey kFull = {"full", "", "f16"};

struct Measured {
  MethodKey method;
  std::map<Key, const Record*> records;  ///< by sample
};

std::string described(const MethodKey& method) {
  return name_of(method) + (method.budget.empty() ? "" : " with a budget of " + method.budget);
}

bool is_score(const std::string& quality) { return quality == "score"; }

bool is_of_task(const Record& record, const std::string& task) {
  return task.empty() || record.key.task == task || record.key.task.starts_with(task + "/");
}

/// Records with the quality, and with a time if that is the cost.
std::vector<const Record*> chosen(const std::vector<Record>& records, const TradeoffChoice& choice) {
  std::vector<const Record*> out;
  bool has_quality = false;
  std::set<std::string> timed;
  std::set<std::string> untimed;
  for (const auto& record : records) {
    const bool fits = record.skipped.empty() && is_of_task(record, choice.task) &&
                      (choice.protocol.empty() || protocol_of(record.key) == choice.protocol);
    if (!fits || (!is_score(choice.quality) && !record.values.contains(choice.quality))) continue;
    has_quality = true;
    const bool is_usable = choice.cost == Cost::bytes || reading_ms(record);
    if (is_usable) out.push_back(&record);
    (is_usable ? timed : untimed).insert(described(method_of(record)));
  }
  if (!has_quality)
    throw InputError(fmt::format("no record{}{} has {}", choice.task.empty() ? "" : " of " + choice.task,
                                 choice.protocol.empty() ? "" : " with the protocol " + choice.protocol,
                                 is_score(choice.quality) ? "a score" : "the value " + choice.quality));
  if (out.empty())
    throw InputError("no record has the time of one method alone: measure with winnow eval --alone for --over time");
  std::erase_if(untimed, [&](const auto& method) { return timed.contains(method); });
  if (!untimed.empty())
    throw InputError(
        fmt::format("no record has the time of {}: measure it with winnow eval --alone, too", listed(untimed)));
  return out;
}

void check_alike(const std::vector<const Record*>& records) {
  std::set<std::string> models;
  std::set<std::string> protocols;
  std::map<MethodKey, std::set<std::string>> calibrations;
  for (const Record* record : records) {
    models.insert(record->model_hash);
    protocols.insert(protocol_of(record->key));
    calibrations[method_of(*record)].insert(record->key.calibration);
  }
  for (const auto& [method, files] : calibrations) {
    if (files.size() > 1)
      throw InputError(
          fmt::format("the records of {} are of {} calibrations: a plot shows one", described(method), files.size()));
  }
  if (models.size() > 1)
    throw InputError(fmt::format("the records are of {} models ({}): a plot shows one", models.size(), listed(models)));
  if (protocols.size() > 1)
    throw InputError(fmt::format("the records are of {} protocols ({}): choose one with --protocol", protocols.size(),
                                 listed(protocols)));
}

std::vector<Measured> by_method(const std::vector<const Record*>& records) {
  std::vector<Measured> out;
  std::map<MethodKey, std::size_t> places;
  for (const Record* record : records) {
    const auto [place, is_new] = places.emplace(method_of(*record), out.size());
    if (is_new) out.push_back({method_of(*record), {}});
    out[place->second].records.emplace(sample_key(*record), record);
  }
  return out;
}

/// The samples of all methods. Throws InputError if there is none.
std::set<Key> common_samples(const std::vector<Measured>& methods) {
  const auto fewest = std::min_element(methods.begin(), methods.end(), [](const Measured& a, const Measured& b) {
    return a.records.size() < b.records.size();
  });
  std::set<Key> out;
  for (const auto& [key, record] : fewest->records) {
    const auto has = [&, &key = key](const Measured& method) { return method.records.contains(key); };
    if (std::all_of(methods.begin(), methods.end(), has)) out.insert(key);
  }
  if (out.empty())
    throw InputError(fmt::format("no sample was measured with all {}; {} has the fewest ({})",
                                 counted(methods.size(), "method and budget", "methods and budgets"),
                                 described(fewest->method), fewest->records.size()));
  return out;
}

double quality_of(const Record& record, const std::string& quality) {
  return is_score(quality) ? record.score : record.values.at(quality);
}

Mean mean_quality(const Measured& method, const std::set<Key>& samples, const std::string& quality) {
  std::map<std::string, std::vector<double>> by_task;
  for (const auto& key : samples) by_task[key.task].push_back(quality_of(*method.records.at(key), quality));
  std::vector<std::vector<double>> groups;
  for (auto& [task, values] : by_task) groups.push_back(std::move(values));
  return mean_of_means(groups);
}

/// Sum over the samples: bytes, or milliseconds.
double total_cost(const Measured& method, const std::set<Key>& samples, Cost cost) {
  double out = 0;
  for (const auto& key : samples) {
    const Record& record = *method.records.at(key);
    out += cost == Cost::bytes ? static_cast<double>(record.bytes_held) : *reading_ms(record);
  }
  return out;
}

Quantity quantity_in(const std::vector<const Record*>& records, const std::string& quality) {
  if (!is_score(quality)) return quantity_of(quality);
  std::set<std::string> values;
  for (const Record* record : records) {
    for (const auto& [name, value] : record->values) values.insert(name);
  }
  auto out = score_of(values);
  if (out.title == "score") out.title = "score, %";  // tables have the unit in a note, an axis has none
  return out;
}

}  // namespace

Tradeoff tradeoff_of(const std::vector<Record>& records, const TradeoffChoice& choice) {
  const auto used = chosen(records, choice);
  check_alike(used);
  const auto methods = by_method(used);
  const auto full = std::find_if(methods.begin(), methods.end(), [](const Measured& m) { return m.method == kFull; });
  if (choice.cost == Cost::time && full == methods.end())
    throw InputError(
        "there are no records of full with f16, the unit of --over time: measure it with winnow eval --alone, too");
  const auto samples = common_samples(methods);
  std::set<Key> all;
  std::set<std::string> tasks;
  for (const Record* record : used) {
    all.insert(sample_key(*record));
    tasks.insert(record->key.task);
  }
  Tradeoff out{
      choice.cost, quantity_in(used, choice.quality), listed(tasks), samples.size(), all.size() - samples.size(), {},
      {}};
  constexpr double kMiBOfCost = 1 << 20;
  const double unit = choice.cost == Cost::bytes ? kMiBOfCost * static_cast<double>(samples.size())
                                                 : total_cost(*full, samples, choice.cost);
  for (const auto& method : methods)
    out.points.push_back({method.method, total_cost(method, samples, choice.cost) / unit,
                          mean_quality(method, samples, choice.quality).times(1 / out.quality.unit)});
  if (full != methods.end()) out.full_cache = out.points[static_cast<std::size_t>(full - methods.begin())].quality;
  return out;
}

}  // namespace winnow::eval
