// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "server/answers/request.h"

namespace winnow::server {

/// Reads `input_prefix`, `input_suffix`, `prompt` and `input_extra`, and puts them together as llama.cpp's server does,
/// by the file's own tokens for filling in. Of the texts of `input_extra` the last ones come in as far as the context
/// holds them beside an answer of so many tokens. Throws ApiError; with 501 where the model has no such tokens.
std::vector<Token> infill_prompt(Fields& fields, const RequestTerms& terms, int answer_tokens);

}  // namespace winnow::server
