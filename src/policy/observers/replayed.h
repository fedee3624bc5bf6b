// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "winnow/policy/method.h"

namespace winnow::policy {

inline constexpr const char* kReplay = "replay";

/// Attention from passages that are replayed after the prompt. All layers replay the same passages: `which` is called
/// with the prompt of the first layer. Without passages there is no replay and no result.
ObserverPart<attention::ColumnStatistics> observe_replay(std::string text,
                                                         std::function<Replay(const LayerPrompt&, int budget)> which);

}  // namespace winnow::policy
