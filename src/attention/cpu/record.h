// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/cpu/block.h"
#include "winnow/policy/attention.h"

namespace winnow::attention::cpu {

/// Destination of the column statistics of some keys: [group][stride] from keys.begin on.
struct Record {
  KeyRange keys;
  float* out = nullptr;
  int stride = 0;

  /// REQUIRES: `key` is in the range.
  float* at(int head, int key) const { return out + static_cast<std::ptrdiff_t>(head) * stride + (key - keys.begin); }
};

/// Adds to `record` the column statistics of a block that retained the probabilities of these keys, as `statistics`
/// requests. `mask` and `weight` are work space, [tokens] each.
void record_columns(const Block& block, const ColumnStatistics& statistics, float* mask, float* weight,
                    const Record& record);

/// True if the request needs the probabilities of all keys, even of those that are not recorded.
inline bool needs_all_keys(const ColumnRequest& request) { return !request.power.empty(); }

}  // namespace winnow::attention::cpu
