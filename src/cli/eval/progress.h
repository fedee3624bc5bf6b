// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eval/runner.h"

namespace winnow::cli {

/// Reports failures on stderr. On a terminal it also shows the progress and the remaining time, in a line that is
/// overwritten.
eval::Progress eval_progress();

/// Clears that line.
void end_eval_progress();

}  // namespace winnow::cli
