// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "winnow/counted_vector.h"

namespace winnow::policy {

/// Writes keys [first, first + count), [count][d].
using KeyRows = std::function<void(int first, int count, std::span<float> out)>;

/// Redundancy of each of n keys, [n]: its mean cosine with the other keys (R-KV, Cai et al., 2025, section 3). The mean
/// of a key leaves out each key to which it is the last similar one (cosine above 0.5), so the last of several similar
/// keys is not redundant. Time grows as n², memory as n.
CountedVector<double> redundancy(int n, int head_dim, const KeyRows& keys);

/// Bytes of the result and the keys' lengths.
std::size_t redundancy_bytes(int n);

}  // namespace winnow::policy
