// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bind.h"
#include "winnow/questions.h"
#include "winnow/session.h"

namespace winnow::python {

/// A budget as Budget::parse() reads it, or a number of entries. Throws UsageError.
std::optional<Budget> budget_of(const nb::object& budget);

/// From a spec, `(spec, budget)`, `(spec, budget, kv_type)` or a CacheOptions. Throws UsageError.
CacheOptions cache_options_of(const nb::handle& cache, Protocol protocol);

/// From a sequence of these, or one that is not a sequence. Throws UsageError where there is none.
std::vector<CacheOptions> all_cache_options_of(const nb::object& caches, Protocol protocol);

/// `question-aware` or `question-agnostic`, as the command calls them. Throws UsageError.
Protocol protocol_of(const std::string& name);

/// `chat` or `raw`. Throws UsageError.
PromptFormat format_of(const std::string& name);

}  // namespace winnow::python
