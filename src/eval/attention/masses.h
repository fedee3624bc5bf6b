// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "eval/attention/observed.h"

namespace winnow::eval {

/// Queries of a prompt whose attention is looked at: so many of the last ones, as in SnapKV's and Ada-KV's window.
inline constexpr int kLastQueries = 32;

/// What the last queries of a head give to each token, [N]: the mean of their rows. `gain` is that of each, the first
/// of them first; empty: 1.
std::vector<double> last_masses(const HeadAttention& attention, int query_head, int tokens,
                                std::span<const double> gain = {});

/// The share of all mass that lies in the `count` largest. 0 where there is no mass.
double share_in_best(std::vector<double> masses, int count);

/// The share of all mass that lies at some positions.
double share_at(std::span<const double> masses, std::span<const std::int32_t> positions);

/// The fewest entries that hold a share of all mass, as a share of all entries.
double fewest_with(std::vector<double> masses, double share);

}  // namespace winnow::eval
