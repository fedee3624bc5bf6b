// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "server/engine_thread.h"

namespace winnow::server {

/// Cost of the prompts of a request and their answers, together.
struct AnswerCost {
  std::string spec;
  std::string budget;  ///< empty: none
  int prompt_tokens = 0;
  int cached_tokens = 0;  ///< of the prompts
  int answer_tokens = 0;
  int reasoning_tokens = 0;  ///< of the answers; known when they have ended
  int answer_steps = 0;      ///< decode steps of all answers: the first token of each comes with its prompt
  int asked_tokens = 0;      ///< the longest answer, as the request or the server's options have it, …
  int context_tokens = 0;    ///< … as far as the context holds it …
  int max_tokens = 0;        ///< … and the memory, too
  int prompts_read = 0;
  double entries_per_head = 0;  ///< mean over the prompts that have been read
  std::size_t bytes_held = 0;   ///< of what was kept of the prompts
  std::size_t bytes_full = 0;
  double queue_ms = 0;
  double read_ms = 0;
  double answer_ms = 0;

  void add_read(const CacheStats& stats);
  void add_end(const PromptEnd& end);
};

}  // namespace winnow::server
