// SPDX-License-Identifier: Apache-2.0
#include "eval/tune.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/as_size.h"
#include "eval/group.h"
#include "eval/tasks/jsonl.h"

namespace winnow::eval {

namespace {

Sample tune_sample(const nlohmann::json& line, int number, const std::string& task) {
  Sample out = begin_sample(line, number, task);
  for (const char* key : {"question", "input", "prompt"}) {
    if (out.prompt.question.empty()) out.prompt.question = line.value(key, "");
  }
  out.references = {""};
  out.max_tokens = 64;  // number of steps of agreeing()
  return out;
}

bool is_full(const CacheOptions& cache) { return cache.spec == Spec() && cache.kv_type == KvType(); }

/// Records of a cache and of the full cache of the same type, on one prompt.
struct Pair {
  const Record* own = nullptr;
  const Record* full = nullptr;
  bool is_whole = false;  ///< the cache keeps all of the prompt
};

/// Empty for a cache that keeps all prompts whole, or cannot read one of them.
std::optional<Trial> trial_of(const CacheOptions& cache, const std::vector<Pair>& pairs) {
  Trial out;
  out.cache = cache;
  std::vector<double> agreements;
  for (const auto& [own, full, is_whole] : pairs) {
    if (!is_whole && !own->skipped.empty()) return {};
    const Record& record = is_whole ? *full : *own;
    out.whole += is_whole ? 1 : 0;
    agreements.push_back(record.score);
    out.kl += record.values.at("kl");
    out.entries += record.entries;
    out.bytes_held += static_cast<double>(record.bytes_held);
  }
  out.samples = static_cast<int>(agreements.size());
  if (out.whole == out.samples) return {};
  out.agreement = mean_of(agreements);
  for (double* sum : {&out.kl, &out.entries, &out.bytes_held}) *sum /= out.samples;
  return out;
}

/// Index of the full cache of the same type.
std::size_t full_of(const std::vector<Method>& methods, const Method& method) {
  const Method full(CacheOptions{Spec(), {}, method.kv_type()});
  return as_size(std::find(methods.begin(), methods.end(), full) - methods.begin());
}

}  // namespace

Task examples(const std::string& path, const TaskOptions& options) {
  return {read_samples(path, options,
                       [&](const nlohmann::json& line, int number) { return tune_sample(line, number, path); }),
          agreeing(), Against::full};
}

std::vector<Trial> trials_of(const Model& model, const Evaluation& evaluation, const std::vector<Record>& records) {
  std::map<Key, const Record*> measured;
  for (const auto& record : records) measured[record.key] = &record;
  const auto& methods = evaluation.methods;
  std::vector<std::vector<Pair>> by_method(methods.size());
  for (const auto& task : evaluation.tasks) {
    for (const auto& sample : task.samples) {
      for (const Protocol protocol : evaluation.protocols) {
        const Group group(model, sample, protocol, methods, evaluation.limits);
        const auto keys = group.keys();
        if (!measured.contains(keys.front())) continue;  // this prompt failed, with all its caches
        for (std::size_t i = 0; i < keys.size(); ++i)
          by_method[i].push_back({measured.at(keys[i]), measured.at(keys[full_of(methods, methods[i])]),
                                  group.keeps_all(model, methods[i])});
      }
    }
  }
  std::vector<Trial> out;
  for (std::size_t i = 0; i < methods.size(); ++i) {
    if (auto trial = trial_of(methods[i].cache(), by_method[i])) out.push_back(std::move(*trial));
  }
  // Orders by bytes; of equals, the better one comes first.
  std::stable_sort(out.begin(), out.end(), [](const Trial& a, const Trial& b) {
    return std::pair(a.bytes_held, -a.agreement.value) < std::pair(b.bytes_held, -b.agreement.value);
  });
  return out;
}

std::optional<Trial> cheapest(std::span<const Trial> trials, double least_agreement) {
  for (const auto& trial : trials) {
    if (!is_full(trial.cache) && trial.agreement.value >= least_agreement) return trial;
  }
  return {};
}

std::optional<Trial> most_faithful(std::span<const Trial> trials) {
  std::optional<Trial> out;
  for (const auto& trial : trials) {
    if (!is_full(trial.cache) && (!out || trial.agreement.value > out->agreement.value)) out = trial;
  }
  return out;
}

}  // namespace winnow::eval
