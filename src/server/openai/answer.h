// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "server/engine_thread.h"
#include "server/openai/generation_fields.h"

namespace winnow::server {

using Json = nlohmann::ordered_json;

/// What all parts of an answer repeat.
struct AnswerHead {
  std::string id;
  std::int64_t created = 0;  ///< seconds since 1970
  std::string model;
};

/// A new id, which begins with `kind` and a hyphen.
std::string new_id(const std::string& kind);

/// What the prompts of a request and their answers took, together.
struct AnswerCost {
  std::string spec;
  std::string budget;  ///< empty: none
  int prompt_tokens = 0;
  int cached_tokens = 0;  ///< of the prompts
  int answer_tokens = 0;
  int answer_steps = 0;  ///< decode steps of all answers: the first token of each comes with its prompt
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

/// OpenAI's names.
const char* finish_name(FinishReason reason);

/// `usage`, `winnow` and `timings` (as llama.cpp's).
Json usage_json(const AnswerCost& cost);
Json keeping_json(const AnswerCost& cost);
Json timings_json(const AnswerCost& cost);

/// An answer as a whole, to which `choices`, `usage` and the like are added; or a chunk of a stream.
Json answer_json(const AnswerHead& head, Surface surface);
Json chunk_json(const AnswerHead& head, Surface surface);

/// An event of a stream.
std::string event(const Json& json);
/// JSON text in which bytes that are no UTF-8 are replaced.
std::string text_of(const Json& json);
/// null for an empty text.
Json text_or_null(const std::string& text);

}  // namespace winnow::server
