// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/jsonl/answers.h"
#include "cli/jsonl/prompts.h"
#include "cli/options.h"

namespace winnow::cli {

/// Input and output of `winnow run --jsonl IN -o OUT`, opened before a model is loaded.
struct JsonlFiles {
  /// Throws what its members throw.
  explicit JsonlFiles(const RunOptions& options)
      : prompts(options.jsonl, options.prompt), answers(options.output, prompts.input()) {}

  JsonlPrompts prompts;
  JsonlAnswers answers;
};

/// Answers the prompts that have no answer yet. Reports unusable lines with file and line, answers the others, and then
/// throws InputError. When interrupted, writes the finished answers and throws Interrupted.
void run_jsonl(const RunOptions& options, JsonlFiles& files, Session& session);

}  // namespace winnow::cli
