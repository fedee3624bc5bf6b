// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "cli/run/report.h"

namespace winnow::cli {

/// What happens to an answer's bytes as they come.
using OnAnswer = std::function<void(std::string_view)>;

/// Generates an answer from the logits after its question. Fills in the generation, its times and memory in `answer`,
/// which already has those of the question. Throws what generate() throws.
void generate_answer(Session& session, Cache& cache, const std::vector<float>& logits, const GenerateOptions& options,
                     const OnAnswer& on_answer, Answer& answer);

}  // namespace winnow::cli
