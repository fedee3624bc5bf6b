// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "winnow/policy/observer.h"

namespace winnow::policy {

/// Sums of attention within tiles.
ObserverPart<attention::ColumnStatistics> observe_tiles(const attention::Tiles& tiles);

}  // namespace winnow::policy
