// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "cli/run/report.h"
#include "winnow/answer_splitter.h"

namespace winnow::cli {

/// Generates an answer from the logits after its question, and splits it. Sets the generation, its message, times and
/// memory in `answer`, which already has those of the question. Throws what generate() throws.
void generate_answer(Session& session, Cache& cache, const std::vector<float>& logits, const GenerateOptions& options,
                     AnswerSplitter splitter, const OnAnswerPart& on_part, Answer& answer);

/// The same, and prints the answer, except with --json.
void answer_and_show(Session& session, Cache& cache, const std::vector<float>& logits, const RunOptions& options,
                     AnswerSplitter splitter, Answer& answer);

}  // namespace winnow::cli
