// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "attention/cpu/block.h"
#include "attention/cpu/block_shape.h"
#include "winnow/policy/attention.h"

namespace winnow::attention::cpu {

/// Destination of the column statistics of some keys, for units of kSummedRows rows: [unit][group][stride] from
/// keys.begin on.
struct Record {
  KeyRange keys;
  float* out = nullptr;
  int stride = 0;
  int group = 0;
  int first_unit = 0;

  /// REQUIRES: `key` is in the range.
  float* at(int unit, int head, int key) const {
    return out + (static_cast<std::ptrdiff_t>(unit - first_unit) * group + head) * stride + (key - keys.begin);
  }
};

/// Tokens of a block that belong to one unit.
struct UnitTokens {
  int unit = 0;
  int first = 0;
  int count = 0;
};

inline std::vector<UnitTokens> units_of(const Block& block) {
  std::vector<UnitTokens> out;
  for (int token = 0; token < block.tokens;) {
    const int row = block.first_key + token;
    const int count = std::min(block.tokens - token, kSummedRows - row % kSummedRows);
    out.push_back({row / kSummedRows, token, count});
    token += count;
  }
  return out;
}

/// Adds to `record` the column statistics of a block that retained the probabilities of these keys, as `statistics`
/// requests. `mask` and `weight` are work space, [tokens] each.
void record_columns(const Block& block, const ColumnStatistics& statistics, float* mask, float* weight,
                    const Record& record);

/// True if the request needs the probabilities of all keys, even of those that are not recorded.
inline bool needs_all_keys(const ColumnRequest& request) { return !request.power.empty(); }

}  // namespace winnow::attention::cpu
