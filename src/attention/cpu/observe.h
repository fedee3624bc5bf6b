#pragma once

#include "attention/cpu/block.h"
#include "attention/observer.h"

namespace winnow::attention::cpu {

/// Adds what a block that retained its probabilities saw, for one observation: out [group][stride], the first visible_keys() of each row.
/// `mask` and `weight` are work space, [tokens] each.
void observe(const Block& block, const Observation& observation, float* mask, float* weight, float* out, int stride);

}  // namespace winnow::attention::cpu
