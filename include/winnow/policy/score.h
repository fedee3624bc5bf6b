// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "winnow/export.h"
#include "winnow/policy/method.h"
#include "winnow/policy/options.h"

/// Building blocks of scorers.
namespace winnow::policy {

/// Sums of the attention of the last `count` queries, or of all queries.
WINNOW_EXPORT ObserverPart<attention::ColumnStatistics> observe_last(int count);
WINNOW_EXPORT ObserverPart<attention::ColumnStatistics> observe_all();

enum class Reduce : std::uint8_t { mean, max, sum };
enum class Pool : std::uint8_t { mean, max };
/// Divisor of average pooling at the ends: the number of entries under the kernel, or always the kernel's length.
enum class Pad : std::uint8_t { valid, count };

WINNOW_EXPORT Reduce reduce_from(const std::string& name);
WINNOW_EXPORT Pool pool_from(const std::string& name);
WINNOW_EXPORT Pad pad_from(const std::string& name);

/// A score for each entry of each KV head from statistics of its G query heads. Sums are in double, so that equal
/// entries get equal scores whatever the order of query heads. NaN statistics give NaN scores.
WINNOW_EXPORT Scores reduce_group(const attention::ColumnStatistics& statistics, const attention::Shape& shape,
                                  Reduce reduce);
/// The same from a number for each entry of each query head, [H_q][n].
WINNOW_EXPORT Scores reduce_group(const Scores& of_query_heads, const attention::Shape& shape, Reduce reduce);

struct Pooling {
  Pool pool = Pool::max;
  int kernel = 1;  ///< odd; 1 changes nothing
  Pad pad = Pad::valid;
};

/// The option `kernel`. Throws UsageError if it is even.
WINNOW_EXPORT int odd_kernel(const Options& options);

/// Pools along positions in place, with stride 1 and a padding of kernel / 2 on both sides. Sums are in double, so
/// constant scores stay constant. NaN spreads over the kernel, in max pooling, too. O(n * kernel).
WINNOW_EXPORT void pool(std::span<float> scores, const Pooling& how);

/// Pools each head over its evictable entries: all but the always kept ones.
WINNOW_EXPORT void pool_evictable(Scores& scores, const AlwaysKept& always_kept, const Pooling& how);

}  // namespace winnow::policy
