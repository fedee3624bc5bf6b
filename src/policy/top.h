// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "winnow/policy/method.h"

/// Selection of the best entries. A score that is no number is worse than any; of equal scores the later position is
/// better, so that results do not depend on the machine or on the number of threads.
namespace winnow::policy {

/// The `count` best of the evictable entries of one head (indices sinks … n - recent - 1), ascending; all of them when
/// there are no more. Linear in n.
std::vector<std::int32_t> top(std::span<const float> scores, int count, const AlwaysKept& always_kept);

/// How many of the `count` best evictable entries of a whole layer fall into each head, [H_kv]. Of equal scores at one
/// position the lower head's is better. Linear in H_kv * n.
std::vector<int> top_of_layer(const Scores& scores, int count, const AlwaysKept& always_kept);
/// Bytes of memory that this takes for so many entries of all heads together.
std::size_t top_of_layer_bytes(std::size_t entries);

/// What one head of n entries keeps: its sinks, the selected entries, its recent ones; ascending.
std::vector<std::int32_t> with_always_kept(std::span<const std::int32_t> selected, int n,
                                           const AlwaysKept& always_kept);

}  // namespace winnow::policy
