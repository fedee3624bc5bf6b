// SPDX-License-Identifier: Apache-2.0
#include "server/answers/cost.h"

#include <algorithm>

namespace winnow::server {

void AnswerCost::add_read(const CacheStats& stats) {
  ++prompts_read;
  entries_per_head += (stats.entries_per_head_mean - entries_per_head) / prompts_read;
  bytes_held += stats.bytes_held;
  bytes_full += stats.bytes_full;
}

void AnswerCost::add_end(const PromptEnd& end) {
  for (const auto& answer : end.answers) {
    const int tokens = static_cast<int>(answer.tokens.size());
    answer_tokens += tokens;
    reasoning_tokens += answer.thinking_tokens;
    answer_steps += std::max(0, tokens - 1);
  }
  max_tokens = std::min(max_tokens, end.max_tokens);
  cached_tokens += end.cached_tokens;
  queue_ms += end.queue_ms;
  read_ms += end.read_ms;
  answer_ms += end.answer_ms;
}

}  // namespace winnow::server
