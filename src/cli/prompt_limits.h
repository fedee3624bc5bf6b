// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eval/plan.h"

namespace CLI {
class App;
}

namespace winnow::cli {

/// What a user says about prompts that are longer than the model's context.
struct PromptLengths {
  int max_prompt = 0;
  bool beyond_context = false;
};

/// Adds --max-prompt and --beyond-context to a command; `lengths` must outlive it.
void add_prompt_lengths(CLI::App& command, PromptLengths& lengths);

/// With the RoPE options: linear:FACTOR makes the context so many times as long; how far another base goes nobody
/// knows, so any length is then taken for wanted.
eval::PromptLimits prompt_limits(const PromptLengths& lengths, const ModelOptions& rope, const ModelInfo& model);

}  // namespace winnow::cli
