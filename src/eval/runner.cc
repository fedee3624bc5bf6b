// SPDX-License-Identifier: Apache-2.0
#include "eval/runner.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/clock.h"
#include "engine/kept_texts.h"
#include "eval/tokenized_sample.h"
#include "winnow/error.h"

namespace winnow::eval {

namespace {

/// Refuses ask methods if a sample has no documents.
void check_documents(const Evaluation& evaluation) {
  const auto ask = std::find_if(evaluation.methods.begin(), evaluation.methods.end(),
                                [](const Method& method) { return method.ask().has_value(); });
  if (ask == evaluation.methods.end()) return;
  for (const auto& task : evaluation.tasks) {
    for (const auto& sample : task.samples) {
      if (sample.documents.empty())
        throw UsageError(fmt::format("{} combines documents, but the sample {} of {} has none", ask->spec(), sample.id,
                                     sample.task));
    }
  }
}

void check_methods(Session& session, const Evaluation& evaluation) {
  for (const auto& method : evaluation.methods) session.options().check(method.cache());
  for (const auto& task : evaluation.tasks) {
    for (const auto& method : evaluation.methods) {
      const auto why = task.refusal ? task.refusal(method) : "";
      if (!why.empty()) throw UsageError(why);
    }
  }
}

/// Calls each(task, sample, protocol) for the groups of the evaluation's share.
template <class Each>
void for_each_group(const Evaluation& evaluation, const Each& each) {
  int number = 0;
  for (const auto& task : evaluation.tasks) {
    for (const auto& sample : task.samples) {
      for (const Protocol protocol : evaluation.protocols) {
        if (number++ % evaluation.shard.count == evaluation.shard.index) each(task, sample, protocol);
      }
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
    int count = 0;
    for_each_group(evaluation_, [&count](const auto&...) { ++count; });
    for_each_group(evaluation_, [&](const Task& task, const Sample& sample, Protocol protocol) {
      one(task, sample, protocol, count);
    });
    outcome_.seconds = ms_since(begin) / 1000;
    return outcome_;
  }

 private:
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

  /// Empty if all records exist.
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

  /// Measures once before the first prompt of a process, which also allocates memory and packs weights.
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

Key without_prompt(Key key) {
  key.prompt_hash.clear();
  return key;
}

/// Hashes of prompts by keys without them. Older folders may have several for one key.
using Hashes = std::map<Key, std::set<std::string>>;

void check_prompt(const Model& model, const Evaluation& evaluation, const Sample& sample, Protocol protocol,
                  const Hashes& known) {
  std::string now;
  for (const auto& method : evaluation.methods) {
    const auto found = known.find(key_without_prompt(sample, protocol, method, evaluation.limits));
    if (found == known.end()) continue;
    if (now.empty()) now = hash_of(tokenized(model, sample, protocol, evaluation.limits.max_prompt));
    if (!found->second.contains(now))
      throw InputError(
          fmt::format("existing records have another prompt for the sample {} of {} (hash {}, now {}), because the "
                      "data or an option for prompts has changed: give another folder with -o",
                      sample.id, sample.task, *found->second.begin(), now));
  }
}

}  // namespace

void check_prompts(const Model& model, std::span<const Evaluation> evaluations, const std::set<Key>& known) {
  Hashes hashes;
  for (const auto& key : known) hashes[without_prompt(key)].insert(key.prompt_hash);
  if (hashes.empty()) return;
  for (const auto& evaluation : evaluations) {
    for_each_group(evaluation, [&](const Task&, const Sample& sample, Protocol protocol) {
      check_prompt(model, evaluation, sample, protocol, hashes);
    });
  }
}

Outlook outlook(std::span<const Evaluation> evaluations, const std::set<Key>& known) {
  std::set<Key> is_known;
  for (const auto& key : known) is_known.insert(without_prompt(key));
  Outlook out;
  std::set<std::pair<std::string, std::string>> samples;
  std::set<Key> planned;
  for (const auto& evaluation : evaluations) {
    for_each_group(evaluation, [&](const Task&, const Sample& sample, Protocol protocol) {
      samples.emplace(sample.task, sample.id);
      for (const auto& method : evaluation.methods) {
        const auto key = key_without_prompt(sample, protocol, method, evaluation.limits);
        if (planned.insert(key).second) ++(is_known.contains(key) ? out.known : out.records);
      }
    });
  }
  out.samples = static_cast<int>(samples.size());
  return out;
}

Outcome run(Session& session, const Evaluation& evaluation, RecordFile& records, const Progress& progress) {
  check_documents(evaluation);
  check_methods(session, evaluation);
  const engine::WithoutTexts reading_all(session);
  return Run(session, evaluation, records, progress).all();
}

}  // namespace winnow::eval
