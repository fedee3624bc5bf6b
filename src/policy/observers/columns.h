// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "winnow/policy/observer.h"

namespace winnow::policy {

/// Statistics of the attention that each key receives from some queries.
ObserverPart<attention::ColumnStatistics> observe_columns(
    std::string text, std::function<attention::ColumnRequest(const LayerPrompt&, int budget)> which);

}  // namespace winnow::policy
