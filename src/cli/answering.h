// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "cli/report.h"

namespace winnow::cli {

/// What happens to an answer's bytes as they come.
using OnAnswer = std::function<void(std::string_view)>;

/// Generates an answer from the logits after its question, and adds to `answer`, which tells how the question was read,
/// what that took. Throws what generate() throws.
void generate_answer(Session& session, Cache& cache, const std::vector<float>& logits, const GenerateOptions& options,
                     const OnAnswer& on_answer, Answer& answer);

}  // namespace winnow::cli
