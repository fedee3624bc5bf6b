// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <set>

#include "base/clock.h"
#include "eval/group.h"
#include "eval/plan.h"
#include "winnow/error.h"

namespace winnow::eval {

namespace {

class Run {
 public:
  Run(Session& session, const Plan& plan, RecordFile& records, const Progress& progress)
      : session_(session), plan_(plan), records_(records), progress_(progress), known_(plan.known) {
    for (const auto& record : records.records()) known_.insert(record.key);
  }

  Outcome all() {
    const auto begin = Clock::now();
    int number = 0;
    const int count = count_groups();
    for (const auto& task : plan_.tasks) {
      for (const auto& sample : task.samples) {
        for (const Protocol protocol : plan_.protocols) {
          if (number++ % plan_.shard.count != plan_.shard.index) continue;
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
    for (const auto& task : plan_.tasks) out += static_cast<int>(task.samples.size() * plan_.protocols.size());
    return (out + plan_.shard.count - 1 - plan_.shard.index) / plan_.shard.count;
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

  /// Nothing when all is known.
  std::vector<Record> measure(const Task& task, const Sample& sample, Protocol protocol) {
    if (task.sharing == Sharing::together) return measure(task, sample, protocol, plan_.caches);
    std::vector<Record> out;
    for (const auto& cache : plan_.caches) {
      for (auto& record : measure(task, sample, protocol, {cache})) out.push_back(std::move(record));
    }
    return out;
  }

  std::vector<Record> measure(const Task& task, const Sample& sample, Protocol protocol,
                              const std::vector<CacheOptions>& caches) {
    Group group(session_.model(), sample, protocol, caches, plan_.limits);
    group.leave_out(known_);
    if (group.empty()) return {};
    if (task.sharing == Sharing::alone) warm_up(task, sample, protocol);
    auto out = group.measure(session_, task);
    for (auto& record : out) record.model_hash = fmt::format("{:016x}", session_.model().hash());
    count_time(out);
    return out;
  }

  void count_time(const std::vector<Record>& group) {
    outcome_.model_seconds += (group.front().timings.prefill_ms + group.front().timings.decode_ms) / 1000;
  }

  /// The first reading of a process pays for memory and for packed weights that those after it find there.
  void warm_up(const Task& task, const Sample& sample, Protocol protocol) {
    if (!is_warm_) {
      count_time(Group(session_.model(), sample, protocol, {CacheOptions()}, plan_.limits).measure(session_, task));
    }
    is_warm_ = true;
  }

  Session& session_;
  const Plan& plan_;
  RecordFile& records_;
  const Progress& progress_;
  std::set<Key> known_;
  bool is_warm_ = false;
  Outcome outcome_;
};

}  // namespace

const char* name_of(Protocol protocol) { return protocol == Protocol::aware ? "question-aware" : "question-agnostic"; }

Outcome run(Session& session, const Plan& plan, RecordFile& records, const Progress& progress) {
  return Run(session, plan, records, progress).all();
}

}  // namespace winnow::eval
