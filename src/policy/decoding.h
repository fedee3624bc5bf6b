// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "winnow/policy/method.h"
#include "winnow/policy/options.h"

namespace winnow::policy {

/// `decay` and `recent`.
std::vector<Option> decoding_options();

/// Lets a method that evicts once evict at every decode step, too. Entries of the prompt begin with its scores, brought
/// to [0, 1]. At each step all scores fade by `decay`, and an entry's score becomes what the token's query gives to it,
/// the largest of the group, where that is more. The entry of the lowest score is evicted. At least `recent` last
/// tokens are always kept.
void evict_while_decoding(Method& method, const Options& options);

}  // namespace winnow::policy
