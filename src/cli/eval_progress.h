// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eval/plan.h"

namespace winnow::cli {

/// Says on stderr what fails, and on a terminal how far a run is and how long the rest takes, in one line that is
/// written over.
eval::Progress eval_progress();

/// Takes that line away.
void end_eval_progress();

}  // namespace winnow::cli
