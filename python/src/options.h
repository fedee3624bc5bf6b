// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bind.h"
#include "winnow/questions.h"
#include "winnow/session.h"

namespace winnow::python {

/// A budget, from a text for Budget::parse() or a number of entries. Throws UsageError.
std::optional<Budget> budget_of(const nb::object& budget);

/// Cache options, from a spec, `(spec, budget)`, `(spec, budget, kv_type)` or a CacheOptions. Throws UsageError.
CacheOptions cache_options_of(const nb::handle& cache, Protocol protocol);

/// Cache options, from a sequence of these or a single one. Throws UsageError if there is none.
std::vector<CacheOptions> all_cache_options_of(const nb::object& caches, Protocol protocol);

/// The protocol, from `question-aware` or `question-agnostic`. Throws UsageError.
Protocol protocol_of(const std::string& name);

/// The format, from `chat` or `raw`. Throws UsageError.
PromptFormat format_of(const std::string& name);

}  // namespace winnow::python
