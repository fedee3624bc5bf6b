// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/openai/fields.h"

namespace winnow::server {

/// Reads the fields of OpenAI's, vLLM's and llama.cpp's requests for features that winnow lacks. Throws NotImplemented
/// if one would change the answer, which must not look as if the feature had been used. Throws FieldError for a value
/// of the wrong type.
void refuse_missing(Fields& fields);

/// Reads the fields that do not change an answer here.
void read_without_effect(Fields& fields);

}  // namespace winnow::server
