// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "winnow/policy/method.h"
#include "winnow/policy/options.h"

namespace winnow::policy {

/// `rows`, `recent` and `lambda`.
std::vector<Option> refit_options();

/// Lets a method store values by which attention to the kept entries alone gives what attention to all gave (after
/// Zweiger et al., 2026, "Fast KV Compaction via Attention Matching"), for the last `rows` queries of the prompt: of
/// those, what ridge regression gives around the entries' own values. So an entry to which no such query attends keeps
/// its value. Each of these queries sees the `recent` tokens up to its own, too, kept or not, as the queries to come
/// will see what is near them. A method that merges does so before.
void refit_values(Method& method, const Options& options);

}  // namespace winnow::policy
