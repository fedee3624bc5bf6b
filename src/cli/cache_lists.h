// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "winnow/questions.h"
#include "winnow/session.h"

namespace CLI {
class App;
}

namespace winnow::cli {

/// The caches that a command compares: all combinations of these lists.
struct CacheLists {
  std::vector<std::string> kv;  ///< none: see methods_in()
  std::vector<std::string> budgets;
  std::vector<std::string> kv_types = {"f16"};
};

/// Adds --kv, --budget and --kv-type to a command; the lists must outlive it.
void add_cache_lists(CLI::App& command, CacheLists& lists);

/// The named methods, or else `auto` if there are budgets, and full if there are none.
std::vector<std::string> methods_in(const CacheLists& lists);

/// True for the same method with the same budget and KV type.
bool is_same(const CacheOptions& a, const CacheOptions& b);

/// All combinations, as eval::methods_of() makes them. Throws UsageError, also for an ask method.
std::vector<CacheOptions> crossed(const CacheLists& lists, std::span<const Protocol> protocols);

}  // namespace winnow::cli
