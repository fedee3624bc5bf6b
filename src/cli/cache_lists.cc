// SPDX-License-Identifier: Apache-2.0
#include "cli/cache_lists.h"

#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>

#include "cli/lists.h"
#include "eval/method.h"
#include "winnow/error.h"
#include "winnow/recommended.h"

namespace winnow::cli {

void add_cache_lists(CLI::App& command, CacheLists& lists) {
  const auto* const unnamed = lists.kv.empty() ? " (default: full; with --budget: auto)" : "";
  as_list(command.add_option("--kv", lists.kv, fmt::format("methods: full, auto, snapkv:window=16, …{}", unnamed)),
          kWords);
  as_split_list(command.add_option("--budget", lists.budgets,
                                   "how much may be kept, for methods that need a budget: 512, 10%, 64MiB"),
                kWords);
  as_split_list(command.add_option("--kv-type", lists.kv_types,
                                   "types of kept entries: f32, f16, bf16, q8_0 or q4_0, or two of them as KEY/VALUE"),
                kWords);
}

std::vector<std::string> methods_in(const CacheLists& lists) {
  if (!lists.kv.empty()) return lists.kv;
  return {lists.budgets.empty() ? "full" : std::string(kAuto)};
}

bool is_same(const CacheOptions& a, const CacheOptions& b) {
  return a.spec == b.spec && a.budget == b.budget && a.kv_type == b.kv_type;
}

std::vector<CacheOptions> crossed(const CacheLists& lists, std::span<const Protocol> protocols) {
  std::vector<CacheOptions> out;
  for (const auto& method : eval::methods_of(methods_in(lists), lists.budgets, lists.kv_types, protocols)) {
    if (method.ask())
      throw UsageError(fmt::format("{} combines documents: use it in winnow eval or winnow docs ask", method.spec()));
    out.push_back(method.cache());
  }
  return out;
}

}  // namespace winnow::cli
