// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "winnow/policy/method.h"

namespace winnow::policy {

inline constexpr const char* kReplay = "replay";

/// Attention from passages that are read once more after the prompt. All layers read the same: `which` is asked with
/// the prompt of the first one. Without passages nothing is read, and there is nothing to look at.
ObserverPart<attention::Observation> observe_replay(std::string text,
                                                    std::function<Replay(const LayerPrompt&, int budget)> which);

}  // namespace winnow::policy
