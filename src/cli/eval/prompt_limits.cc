// SPDX-License-Identifier: Apache-2.0
#include "cli/eval/prompt_limits.h"

#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <span>

#include "base/hash.h"
#include "cli/calibrate/name.h"
#include "cli/counts.h"

namespace winnow::cli {

namespace {

std::string option_name(const ModelOptions& rope) {
  std::string out = rope.rope_scaling;
  if (rope.rope_freq_base > 0) out += fmt::format("{}base:{}", out.empty() ? "" : "+", rope.rope_freq_base);
  if (!rope.chat_template.empty())
    out += fmt::format("{}template:{:016x}", out.empty() ? "" : "+",
                       hash_of(std::as_bytes(std::span(rope.chat_template))));
  return out;
}

}  // namespace

void add_prompt_lengths(CLI::App& command, PromptLengths& lengths) {
  command
      .add_option("--max-prompt", lengths.max_prompt,
                  "tokens to which longer prompts are cut, without their middle, as in LongBench (default: prompts "
                  "longer than the model's context are an error)")
      ->check(counts_from(1));
  command.add_flag("--beyond-context", lengths.beyond_context,
                   "also read prompts that are longer than the model's context");
}

eval::PromptLimits prompt_limits(const PromptLengths& lengths, const CommonOptions& options, const ModelInfo& model) {
  using Beyond = eval::PromptLimits::Beyond;
  const ModelOptions& rope = options.loading;
  const bool allowed = lengths.beyond_context || rope.rope_freq_base > 0;
  return {lengths.max_prompt, model.context, allowed ? Beyond::allowed : Beyond::refused, option_name(rope),
          calibration_name(options.session)};
}

}  // namespace winnow::cli
