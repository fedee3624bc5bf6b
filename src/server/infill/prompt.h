// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "server/answers/request.h"

namespace winnow::server {

/// Reads `input_prefix`, `input_suffix`, `prompt` and `input_extra`, and joins them as llama.cpp's server does, by the
/// model's fill-in-the-middle tokens. Keeps the end of the texts of `input_extra`: what fits into the context beside an
/// answer of `answer_tokens`. Throws ApiError; with status 501 if the model has no such tokens.
std::vector<Token> infill_prompt(Fields& fields, const RequestTerms& terms, int answer_tokens);

}  // namespace winnow::server
