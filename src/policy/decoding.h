// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "winnow/policy/method.h"
#include "winnow/policy/options.h"

namespace winnow::policy {

/// `decay` and `recent`.
std::vector<Option> decoding_options();

/// Lets a method that evicts once evict at every decode step, too. Entries of the prompt begin with its scores, brought
/// to [0, 1]; with -1 where these are minus infinity or no numbers. At each step all scores fade by `decay`, and an
/// entry's score becomes what the token's query gives to it, the largest of the group, where that is more. The entry
/// with the lowest score is evicted. The last tokens are always kept: as many as the method always keeps, and at least
/// `recent`, but for these at most half of what the first tokens leave of the budget.
void evict_while_decoding(Method& method, const Options& options);

}  // namespace winnow::policy
