// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "attention/attention.h"
#include "base/tiles.h"

namespace winnow::attention::cpu {

/// While one is alive the thread's tiles are configured for the functions that multiply by them; for products of f32,
/// and on machines without AMX, nothing is done.
class AmxScope {
 public:
  explicit AmxScope(ComputeType compute_type);

 private:
  std::optional<TileScope> tiles_;
};

}  // namespace winnow::attention::cpu
