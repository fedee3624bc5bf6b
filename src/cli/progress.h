// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/clock.h"
#include "winnow/session.h"

namespace winnow::cli {

/// ", 12 s left" for work of which a share is done since it began; empty: nothing is done yet.
std::string time_left(Clock::time_point begin, double done);

/// Shows how far a prompt has been read and how long the rest will take: one line on stderr that is written over, on a
/// terminal alone.
void show_progress(Session& session, const std::string& what = "reading the prompt");

}  // namespace winnow::cli
