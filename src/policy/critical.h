// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "winnow/policy/method.h"
#include "winnow/policy/options.h"

namespace winnow::policy {

/// `share` and `epsilon`.
std::vector<Option> critical_options();

/// Lets a method choose in two stages (CriticalKV: Feng et al., 2025, "Identify Critical KV Cache in LLM Inference from
/// an Output Perturbation Perspective", algorithm 1): `share` of a head's budget, always kept entries included, goes to
/// its best scores, the rest to the highest (score + epsilon) |W_o^(h) v|, in sums of absolute values, the mean over
/// the query heads of the group. REQUIRES: no part chooses entries in a way of its own.
void choose_critical(Method& method, const Options& options);

}  // namespace winnow::policy
