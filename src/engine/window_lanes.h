// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/memory.h"
#include "cache/growing_lanes.h"

namespace winnow::engine {

/// A copy of the lanes of layers with windows, whose entries later tokens overwrite.
struct WindowLanes {
  MemoryAccount account;
  std::vector<cache::GrowingLanes> lanes;  ///< [layer with a window], indexed by model::Hparams::place_of
};

}  // namespace winnow::engine
