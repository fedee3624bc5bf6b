// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "winnow/policy/method.h"
#include "winnow/policy/options.h"

namespace winnow::policy {

/// Options `decay` and `recent`.
std::vector<Option> decoding_options();

/// Makes a method that evicts once evict at every decode step, too. Entries of the prompt begin with its scores,
/// shifted and scaled into [0, 1], or with -1 if a score is minus infinity or NaN. At each step an entry's score
/// becomes the larger of its old score times `decay` and the token's attention to it (the maximum over the group). The
/// entry with the lowest score is evicted. The last tokens are always kept: as many as the method always keeps, and at
/// least `recent`, but the latter take at most half of the budget after the sinks.
void evict_while_decoding(Method& method, const Options& options);

}  // namespace winnow::policy
