// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "device/kernels.h"
#include "device/kernels/primitives.h"

namespace winnow::device {

/// Work space of a decode step: the output of each item and query head of its group, [items][group][dim], followed by
/// the largest logits and the sums of 2^(logit - largest), [items][group][2].
struct Parts {
  float* outputs;
  float* states;
  int group;
  int dim;

  WINNOW_DEVICE explicit Parts(const DecodeTask& task)
      : outputs(task.partial), group(task.heads / task.kv_heads), dim(task.dim) {
    states = outputs + place(task.item_count, 0) * dim;
  }

  WINNOW_DEVICE std::size_t place(int item, int head) const { return static_cast<std::size_t>(item) * group + head; }
  WINNOW_DEVICE float* out(std::size_t place) const { return outputs + place * dim; }
  WINNOW_DEVICE float& largest(std::size_t place) const { return states[place * 2]; }
  WINNOW_DEVICE float& sum(std::size_t place) const { return states[place * 2 + 1]; }
};

}  // namespace winnow::device
