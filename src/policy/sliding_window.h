// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cache/keep_plan.h"
#include "cache/lanes.h"
#include "winnow/policy/method.h"

/// A layer whose queries see a window of the text: its lanes hold the last tokens, whatever method the others have.
namespace winnow::policy {

/// What such a layer does, with a budget of its window: streaming-llm without sinks. A query sees the positions of its
/// window alone, however many entries its lane has.
const Method& sliding_window();

/// Adds the slots whose entries stand at positions [first, end).
void add_positions(const cache::LayerLanes& lanes, int head, std::int32_t first, std::int32_t end,
                   cache::AttendPlan& plan);

/// Whether a lane has what sliding_window() leaves in it when `seen` tokens have been seen, in slots that it can go on
/// from: the last ones in their order, in a ring where the window is full.
bool holds_window(const cache::LayerLanes& lanes, int head, int window, int seen);

}  // namespace winnow::policy
