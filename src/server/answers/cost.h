// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "server/engine_thread.h"

namespace winnow::server {

/// Cost of all prompts of a request and their answers.
struct AnswerCost {
  std::string spec;
  std::string budget;  ///< empty: none
  int prompt_tokens = 0;
  int cached_tokens = 0;  ///< tokens of the prompts that were not read because they were stored
  int answer_tokens = 0;
  int reasoning_tokens = 0;  ///< tokens of the answers, known at their ends
  int answer_steps = 0;      ///< decode steps of all answers; the first token of each needs none
  int asked_tokens = 0;      ///< longest answer by the request or the server's options
  int context_tokens = 0;    ///< the same, limited by the context
  int max_tokens = 0;        ///< the same, limited by context and memory
  int prompts_read = 0;
  double entries_per_head = 0;  ///< mean over the prompts that have been read
  std::size_t bytes_held = 0;   ///< of the prompts' caches after compression
  std::size_t bytes_full = 0;
  double queue_ms = 0;
  double read_ms = 0;
  double answer_ms = 0;

  void add_read(const CacheStats& stats);
  void add_end(const PromptEnd& end);
};

}  // namespace winnow::server
