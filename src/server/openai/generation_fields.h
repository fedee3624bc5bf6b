// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "server/openai/fields.h"
#include "server/options.h"
#include "winnow/model.h"

namespace winnow::server {

/// Which of OpenAI's two ways to ask.
enum class Surface : std::uint8_t { chat, completion };

/// How answers are told.
struct AnswerForm {
  Surface surface = Surface::chat;
  int answers = 1;                        ///< to each prompt
  std::optional<int> alternatives;        ///< log probabilities of each token and of so many others; none: none at all
  int priority = 0;                       ///< among the requests of the same key
  std::optional<std::string> cache_salt;  ///< requests with the same share texts that were read
  bool stream = false;
  bool calls = false;         ///< an answer may be calls of tools
  bool echo = false;          ///< the prompt's text comes before each answer's
  bool usage_at_end = false;  ///< of a stream
  bool usage_in_chunks = false;
};

/// Reads the fields that say how answers are told. Throw ApiError.
AnswerForm read_form(Fields& fields, Surface surface);
/// Those that say what answers are: length, sampling, stops.
GenerateOptions read_generation(Fields& fields, const AnswerForm& form, const RequestDefaults& defaults,
                                const ModelInfo& model);

}  // namespace winnow::server
