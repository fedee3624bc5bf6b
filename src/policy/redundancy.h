// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "winnow/counted_vector.h"

namespace winnow::policy {

/// Writes keys [first, first + count), [count][d].
using KeyRows = std::function<void(int first, int count, std::span<float> out)>;

/// Redundancy of each of n keys, [n]: the mean cosine of the other keys with it. For each key, the last key similar to
/// it (cosine above 0.5) does not count their cosine, so the last of several similar keys is not redundant. R-KV (Cai
/// et al., 2025), section 3. Time grows as n², memory as n.
CountedVector<double> redundancy(int n, int head_dim, const KeyRows& keys);

/// Bytes of the result and the keys' lengths.
std::size_t redundancy_bytes(int n);

}  // namespace winnow::policy
