// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/options.h"

namespace winnow::cli {

/// `winnow run`: one text with any number of questions, or many prompts from a file. Throws winnow::Error; throws
/// Interrupted after printing the summary.
void run_command(const RunOptions& options);

}  // namespace winnow::cli
