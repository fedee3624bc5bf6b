// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "winnow/policy/method.h"
#include "winnow/policy/options.h"

namespace winnow::policy {

/// Options `share` and `epsilon`.
std::vector<Option> critical_options();

/// Makes a method select entries in two rounds (CriticalKV: Feng et al., 2025, "Identify Critical KV Cache in LLM
/// Inference from an Output Perturbation Perspective", algorithm 1). The best scores get `share` of a head's budget,
/// always kept entries included. The rest goes to the highest (score + epsilon) |W_o^(h) v|, where |·| is the sum of
/// absolute values, averaged over the query heads of the group. REQUIRES: the method has no selection rule of its own.
void choose_critical(Method& method, const Options& options);

}  // namespace winnow::policy
