#pragma once

#include "cache/element.h"

namespace winnow::attention::cpu {

/// Keys of one item of decode attention. A constant, so that results do not depend on the number of threads.
inline constexpr int kStretchKeys = 256;
/// Query heads that pass over a stretch together; larger groups pass several times.
inline constexpr int kStretchHeads = 8;

/// Some query heads of one token over at most kStretchKeys rows of f32, f16 or bf16.
struct Stretch {
  const float* q = nullptr;  ///< [heads][d], scaled
  int heads = 0;             ///< at most kStretchHeads
  cache::Rows keys;
  cache::Rows values;
  float* logits = nullptr;  ///< [heads][kStretchKeys]: the scaled q·k come back, then their exponentials take their place
  float* capture = nullptr;  ///< where the logits are copied to, [heads][capture_stride], or null
  int capture_stride = 0;
  float* o = nullptr;  ///< [heads][d] weighted sum of values
  float* m = nullptr;  ///< [heads] largest logit
  float* d = nullptr;  ///< [heads] sum of exponentials
};

void run_stretch(const Stretch& stretch);

}  // namespace winnow::attention::cpu
