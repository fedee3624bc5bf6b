// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/answers/cost.h"
#include "server/json.h"
#include "winnow/prompt.h"

namespace winnow::server {

/// Format of answers, and how they are scheduled and shared.
struct AnswerForm {
  int answers = 1;                        ///< number for each prompt
  std::optional<int> alternatives;        ///< number of other tokens with log probabilities at each position; none: no
                                          ///< log probabilities
  int priority = 0;                       ///< among the requests of the same key; higher ones begin first
  std::optional<std::string> cache_salt;  ///< requests with the same salt share texts that were read
  bool cache_prompt = true;               ///< false: reads all of the prompt, and stores nothing of it
  bool stream = false;
  bool echo = false;          ///< repeat the prompt's text before each answer's
  bool usage_at_end = false;  ///< in a stream
  bool usage_in_chunks = false;
};

/// Fields that all chunks of an answer repeat.
struct AnswerHead {
  std::string id;
  std::int64_t created = 0;  ///< seconds since 1970
  std::string model;
};

/// Facts about the answers to a request that are known before they begin.
struct AnswerPlan {
  AnswerForm form;
  AnswerHead head;
  AnswerCost cost;
  std::vector<std::string> stops = {};          ///< texts that end an answer
  std::vector<int> prompt_tokens = {};          ///< [prompt]
  std::vector<std::vector<Token>> echoed = {};  ///< tokens of each prompt that its answers repeat
  Json repeated = {};                           ///< fields of the request that the answer repeats
};

}  // namespace winnow::server
