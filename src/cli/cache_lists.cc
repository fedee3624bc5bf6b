// SPDX-License-Identifier: Apache-2.0
#include "cli/cache_lists.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "winnow/error.h"
#include "winnow/policy/method.h"

namespace winnow::cli {

namespace {

std::vector<CacheOptions> with_budgets(const CacheOptions& cache, const std::vector<std::string>& budgets) {
  if (!cache.spec.method().needs_budget() || budgets.empty()) {
    cache.check();
    return {cache};
  }
  std::vector<CacheOptions> out;
  for (const auto& budget : budgets) {
    out.push_back(cache);
    out.back().budget = Budget::parse(budget);
  }
  return out;
}

}  // namespace

void add_cache_lists(CLI::App& command, CacheLists& lists) {
  // Each use takes one word: the next word may be a task.
  command.add_option("--kv", lists.kv, "methods: full, snapkv:window=16, … (default full)")->allow_extra_args(false);
  command.add_option("--budget", lists.budgets, "what may stay, for each method that needs one: 512, 10%, 64MiB")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--kv-type", lists.kv_types, "f32, f16, bf16, q8_0 or q4_0, or KEY/VALUE")
      ->delimiter(',')
      ->allow_extra_args(false);
}

bool is_same(const CacheOptions& a, const CacheOptions& b) {
  return a.spec == b.spec && a.budget == b.budget && a.kv_type == b.kv_type;
}

std::vector<CacheOptions> crossed(const CacheLists& lists) {
  std::vector<CacheOptions> out;
  for (const auto& list : lists.kv) {
    for (const auto& spec : Spec::parse_list(list)) {
      for (const auto& kv_type : lists.kv_types) {
        const auto with = with_budgets({spec, {}, KvType::parse(kv_type)}, lists.budgets);
        for (const auto& cache : with) {
          if (std::none_of(out.begin(), out.end(), [&](const CacheOptions& other) { return is_same(cache, other); }))
            out.push_back(cache);
        }
      }
    }
  }
  return out;
}

}  // namespace winnow::cli
