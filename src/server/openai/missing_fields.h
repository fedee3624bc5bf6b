// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/openai/fields.h"

namespace winnow::server {

/// Reads the fields of OpenAI's, vLLM's and llama.cpp's requests that ask for what winnow cannot do. Throws
/// NotImplemented where one would change the answer: it must not look as if that had been done. Throws FieldError for a
/// value of another type.
void refuse_missing(Fields& fields);

/// Reads those that do not change an answer here.
void read_without_effect(Fields& fields);

}  // namespace winnow::server
