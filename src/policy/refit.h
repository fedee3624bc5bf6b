// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "winnow/policy/method.h"
#include "winnow/policy/options.h"

namespace winnow::policy {

/// Options `rows`, `recent` and `lambda`.
std::vector<Option> refit_options();

/// Makes a method store values with which attention over the kept entries reproduces the outputs of full attention
/// (after Zweiger et al., 2026, "Fast KV Compaction via Attention Matching"). They are fitted for the last `rows`
/// queries of the prompt, by ridge regression around the entries' own values, so an entry to which no such query
/// attends keeps its value. Each of these queries also sees the `recent` tokens up to its own, kept or not, as future
/// queries will see their neighbours. A method that merges does so before.
void refit_values(Method& method, const Options& options);

}  // namespace winnow::policy
