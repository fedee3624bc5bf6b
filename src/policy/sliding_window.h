// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cache/keep_plan.h"
#include "cache/lanes.h"
#include "winnow/policy/method.h"

/// Layers with a sliding window: lanes hold the last tokens, whatever method the other layers have.
namespace winnow::policy {

/// Method of such a layer, with the window as its budget: streaming-llm without sinks. A query reads the positions of
/// its window only, however many entries its lane has.
const Method& sliding_window();

/// Adds the slots of entries with positions in [first, end).
void add_positions(const cache::LayerLanes& lanes, int head, std::int32_t first, std::int32_t end,
                   cache::AttendPlan& plan);

/// True if a lane is in a state that sliding_window() can continue from after `seen` tokens: the last tokens in order,
/// or as a ring if the window is full.
bool holds_window(const cache::LayerLanes& lanes, int head, int window, int seen);

}  // namespace winnow::policy
