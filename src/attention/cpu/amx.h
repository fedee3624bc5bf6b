// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "attention/attention.h"
#include "base/tiles.h"

namespace winnow::attention::cpu {

/// Configures the thread's AMX tiles during its lifetime. Does nothing for f32, and on machines without AMX.
class AmxScope {
 public:
  explicit AmxScope(ComputeType compute_type);

 private:
  std::optional<TileScope> tiles_;
};

}  // namespace winnow::attention::cpu
