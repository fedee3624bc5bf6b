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

/// Limits with the RoPE options and the calibration. linear:FACTOR multiplies the context by FACTOR. With another base,
/// the context is unknown, so any length is allowed.
eval::PromptLimits prompt_limits(const PromptLengths& lengths, const CommonOptions& options, const ModelInfo& model);

}  // namespace winnow::cli
