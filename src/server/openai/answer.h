// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "server/answers/plan.h"
#include "server/json.h"

namespace winnow::server {

/// A new id, which begins with `prefix`.
std::string new_id(const std::string& prefix);

/// OpenAI's names.
const char* finish_name(FinishReason reason);

/// `usage`, `winnow` and `timings` (as llama.cpp's).
Json usage_json(const AnswerCost& cost);
Json keeping_json(const AnswerCost& cost);
Json timings_json(const AnswerCost& cost);

/// The begin of an answer or a chunk of a stream, which is such an object.
Json head_json(const AnswerHead& head, const char* object);

/// An event of a stream.
std::string event(const Json& json);
/// The same with the name that its `type` says.
std::string named_event(const Json& json);
/// JSON text in which bytes that are no UTF-8 are replaced.
std::string text_of(const Json& json);
/// null for an empty text.
Json text_or_null(const std::string& text);

}  // namespace winnow::server
