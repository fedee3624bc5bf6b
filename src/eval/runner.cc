// SPDX-License-Identifier: Apache-2.0
#include "eval/runner.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <set>

#include "base/clock.h"
#include "winnow/error.h"

namespace winnow::eval {

namespace {

/// Refuses to ask over documents where there are none.
void check_documents(const Evaluation& evaluation) {
  const auto ask = std::find_if(evaluation.methods.begin(), evaluation.methods.end(),
                                [](const Method& method) { return method.ask().has_value(); });
  if (ask == evaluation.methods.end()) return;
  for (const auto& task : evaluation.tasks) {
    for (const auto& sample : task.samples) {
      if (sample.documents.empty())
        throw UsageError(fmt::format("{} asks over documents, and the sample {} of {} has none", ask->spec(), sample.id,
                                     sample.task));
    }
  }
}

class Run {
 public:
  Run(Session& session, const Evaluation& evaluation, RecordFile& records, const Progress& progress)
      : session_(session), evaluation_(evaluation), records_(records), progress_(progress), known_(evaluation.known) {
    for (const auto& record : records.records()) known_.insert(record.key);
  }

  Outcome all() {
    const auto begin = Clock::now();
    int number = 0;
    const int count = count_groups();
    for (const auto& task : evaluation_.tasks) {
      for (const auto& sample : task.samples) {
        for (const Protocol protocol : evaluation_.protocols) {
          if (number++ % evaluation_.shard.count != evaluation_.shard.index) continue;
          one(task, sample, protocol, count);
        }
      }
    }
    outcome_.seconds = ms_since(begin) / 1000;
    return outcome_;
  }

 private:
  int count_groups() const {
    int out = 0;
    for (const auto& task : evaluation_.tasks)
      out += static_cast<int>(task.samples.size() * evaluation_.protocols.size());
    return (out + evaluation_.shard.count - 1 - evaluation_.shard.index) / evaluation_.shard.count;
  }

  void one(const Task& task, const Sample& sample, Protocol protocol, int count) {
    const std::string what = fmt::format("{} {} {}", sample.task, sample.id, name_of(protocol));
    if (progress_.on_group) progress_.on_group(outcome_.measured + outcome_.known + outcome_.failed, count, what);
    std::vector<Record> records;
    try {
      records = measure(task, sample, protocol);
    } catch (const Interrupted&) {
      throw;
    } catch (const Error& error) {
      ++outcome_.failed;
      if (progress_.on_failure) progress_.on_failure(fmt::format("{}: {}", what, error.what()));
      return;
    }
    if (records.empty()) {
      ++outcome_.known;
    } else {
      records_.add(records);
      ++outcome_.measured;
    }
  }

  /// Empty when everything is known.
  std::vector<Record> measure(const Task& task, const Sample& sample, Protocol protocol) {
    if (task.sharing == Sharing::together) return measure(task, sample, protocol, evaluation_.methods);
    std::vector<Record> out;
    for (const auto& method : evaluation_.methods) {
      for (auto& record : measure(task, sample, protocol, {method})) out.push_back(std::move(record));
    }
    return out;
  }

  std::vector<Record> measure(const Task& task, const Sample& sample, Protocol protocol,
                              const std::vector<Method>& methods) {
    Group group(session_.model(), sample, protocol, methods, evaluation_.limits);
    group.leave_out(known_);
    if (group.empty()) return {};
    if (task.sharing == Sharing::alone && std::holds_alternative<Measure>(task.measure))
      warm_up(task, sample, protocol);
    auto out = group.measure(session_, task);
    for (auto& record : out) record.model_hash = fmt::format("{:016x}", session_.model().hash());
    count_time(out);
    return out;
  }

  void count_time(const std::vector<Record>& group) {
    outcome_.model_seconds += (group.front().timings.prefill_ms + group.front().timings.decode_ms) / 1000;
  }

  /// The first prompt of a process also allocates memory and packs weights, which later ones find done.
  void warm_up(const Task& task, const Sample& sample, Protocol protocol) {
    if (!is_warm_) {
      count_time(
          Group(session_.model(), sample, protocol, {CacheOptions()}, evaluation_.limits).measure(session_, task));
    }
    is_warm_ = true;
  }

  Session& session_;
  const Evaluation& evaluation_;
  RecordFile& records_;
  const Progress& progress_;
  std::set<Key> known_;
  bool is_warm_ = false;
  Outcome outcome_;
};

}  // namespace

Outcome run(Session& session, const Evaluation& evaluation, RecordFile& records, const Progress& progress) {
  check_documents(evaluation);
  return Run(session, evaluation, records, progress).all();
}

}  // namespace winnow::eval
