// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/options.h"
#include "eval/group.h"

namespace CLI {
class App;
}

namespace winnow::cli {

/// The user's choice for prompts that are longer than the model's context.
struct PromptLengths {
  int max_prompt = 0;
  bool beyond_context = false;
};

/// Adds --max-prompt and --beyond-context to a command; `lengths` must outlive it.
void add_prompt_lengths(CLI::App& command, PromptLengths& lengths);

/// The limits with the RoPE options and the calibration. linear:FACTOR makes the context FACTOR times as long. How long
/// a context another base allows is unknown, so any length is then allowed.
eval::PromptLimits prompt_limits(const PromptLengths& lengths, const CommonOptions& options, const ModelInfo& model);

}  // namespace winnow::cli
