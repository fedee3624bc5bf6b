// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "winnow/policy/method.h"
#include "winnow/policy/options.h"

namespace winnow::policy {

/// `decay`.
std::vector<Option> decoding_options();

/// Lets a method that evicts once evict at every decode step, too. Its scores are where the entries begin. At each step
/// they fade by `decay`, and what the token's query gives to an entry, the largest of the group, is its score if it is
/// more. So scores of any scale come to be attention.
void evict_while_decoding(Method& method, const Options& options);

}  // namespace winnow::policy
