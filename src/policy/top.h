// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "winnow/policy/method.h"

/// Selection of the best entries. NaN is the lowest score. Ties go to the later position, so that results do not depend
/// on the machine or the number of threads.
namespace winnow::policy {

/// The `count` best evictable entries of one head (indices sinks … n - recent - 1), ascending, or all if there are
/// fewer. Linear in n.
std::vector<std::int32_t> top(std::span<const float> scores, int count, const AlwaysKept& always_kept);

/// Number of the `count` best evictable entries of a layer in each head, [H_kv]. At one position, ties go to the lower
/// head. Linear in H_kv * n.
std::vector<int> top_of_layer(const Scores& scores, int count, const AlwaysKept& always_kept);
/// Bytes that top_of_layer() needs for `entries` entries of all heads together.
std::size_t top_of_layer_bytes(std::size_t entries);

/// Entries that a head of n entries keeps: its sinks, the selected entries, its recent ones; ascending.
std::vector<std::int32_t> with_always_kept(std::span<const std::int32_t> selected, int n,
                                           const AlwaysKept& always_kept);

}  // namespace winnow::policy
