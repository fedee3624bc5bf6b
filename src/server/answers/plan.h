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

/// How answers are told.
struct AnswerForm {
  int answers = 1;                        ///< to each prompt
  std::optional<int> alternatives;        ///< log probabilities of each token and of so many others; none: none at all
  int priority = 0;                       ///< among the requests of the same key: higher ones begin first
  std::optional<std::string> cache_salt;  ///< requests with the same share texts that were read
  bool stream = false;
  bool echo = false;          ///< the prompt's text comes before each answer's
  bool usage_at_end = false;  ///< of a stream
  bool usage_in_chunks = false;
};

/// Fields that all parts of an answer repeat.
struct AnswerHead {
  std::string id;
  std::int64_t created = 0;  ///< seconds since 1970
  std::string model;
};

/// The answers to a request as far as they are known before they begin.
struct AnswerPlan {
  AnswerForm form;
  AnswerHead head;
  AnswerCost cost;
  std::vector<std::string> stops = {};          ///< texts that end an answer
  std::vector<int> prompt_tokens = {};          ///< [prompt]
  std::vector<std::vector<Token>> echoed = {};  ///< [prompt], where prompts come before their answers
  Json repeated = {};                           ///< fields of the request that the surface's answer has again
};

}  // namespace winnow::server
