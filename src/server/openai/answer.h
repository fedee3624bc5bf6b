// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "server/answers/plan.h"
#include "server/json.h"

namespace winnow::server {

/// A new id that begins with `prefix`.
std::string new_id(const std::string& prefix);

/// OpenAI's name of a finish reason.
const char* finish_name(FinishReason reason);

/// The objects `usage`, `winnow` and `timings` (llama.cpp's).
Json usage_json(const AnswerCost& cost);
Json keeping_json(const AnswerCost& cost);
Json timings_json(const AnswerCost& cost);

/// The first fields of an answer or a chunk, which has the type `object`.
Json head_json(const AnswerHead& head, const char* object);

/// An event of a stream.
std::string event(const Json& json);
/// An event with the name in its `type`.
std::string named_event(const Json& json);
/// Serializes JSON, replacing invalid UTF-8.
std::string text_of(const Json& json);
/// The text, or null if it is empty.
Json text_or_null(const std::string& text);

}  // namespace winnow::server
