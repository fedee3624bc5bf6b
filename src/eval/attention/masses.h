// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "eval/attention/observed.h"

namespace winnow::eval {

/// Number of last queries whose attention is observed, as in SnapKV's and Ada-KV's window.
inline constexpr int kLastQueries = 32;

/// Attention to each token, [N]: the mean over the last queries of a head. `gain` has one number for each of these
/// queries, in their order; if empty, all are 1.
std::vector<double> last_masses(const HeadAttention& attention, int query_head, int tokens,
                                std::span<const double> gain = {});

/// Share of all attention that the `count` largest get. 0 if there is none.
double share_in_best(std::vector<double> masses, int count);

/// Share of all attention at the given positions.
double share_at(std::span<const double> masses, std::span<const std::int32_t> positions);

/// The fewest entries that together get the given share of all attention, as a share of all entries.
double fewest_with(std::vector<double> masses, double share);

}  // namespace winnow::eval
