// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/cpu/block.h"
#include "winnow/policy/attention.h"

namespace winnow::attention::cpu {

/// Where one observation's statistics of some keys go: [group][stride] from keys.begin on.
struct Record {
  KeyRange keys;
  float* out = nullptr;
  int stride = 0;

  /// REQUIRES: a key of the range.
  float* at(int head, int key) const { return out + static_cast<std::ptrdiff_t>(head) * stride + (key - keys.begin); }
};

/// Adds what a block that retained its probabilities of those keys saw, for one observation. `mask` and `weight` are
/// work space, [tokens] each.
void observe(const Block& block, const Observation& observation, float* mask, float* weight, const Record& record);

/// Whether an observation is made of the probabilities of all keys, also of those that it does not record.
inline bool needs_all_keys(const Observe& what) { return !what.power.empty(); }

}  // namespace winnow::attention::cpu
