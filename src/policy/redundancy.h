// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "winnow/counted_vector.h"

namespace winnow::policy {

/// Writes keys [first, first + count), [count][d].
using KeyRows = std::function<void(int first, int count, std::span<float> out)>;

/// How much of what each of n keys says the others say, too, [n]: the sum of their cosines with it, divided by n. A key
/// spares the last of those that are similar to it (a cosine above 0.5): its cosine with that one is not in the sum. So
/// the last of several similar keys is not redundant. R-KV (Cai et al., 2025), section 3. Time grows as n², memory as
/// n.
CountedVector<double> redundancy(int n, int head_dim, const KeyRows& keys);

/// Its result and the keys' lengths.
std::size_t redundancy_bytes(int n);

}  // namespace winnow::policy
