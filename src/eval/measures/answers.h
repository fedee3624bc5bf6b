// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "eval/record.h"
#include "eval/tokenized_sample.h"
#include "winnow/session.h"

namespace winnow::eval {

/// Generates the caches' answers and scores them: the records of answering().
std::vector<Record> generated_answers(Session& session, const TokenizedSample& tokenized, std::vector<Cache>& caches,
                                      const std::vector<std::vector<float>>& logits);

}  // namespace winnow::eval
