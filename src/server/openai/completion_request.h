// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "server/openai/fields.h"
#include "winnow/model.h"

namespace winnow::server {

/// Reads `prompt`: a text, a list of tokens, or a list of texts or of lists of tokens. In texts the names of control
/// tokens are tokens, as other servers have it. Throws ApiError; with code context_length_exceeded for a text that must
/// have more tokens than `context`.
std::vector<Prompt> read_prompts(Fields& fields, const Model& model, int context);

/// Bytes of the longest text among the prompts.
std::size_t longest_text(Fields& fields);

/// The tokens of a text as a prompt of its own, with BOS where the model wants it.
std::vector<Token> tokens_of_prompt(const Model& model, const std::string& text);

/// Throws ApiError with code context_length_exceeded for a prompt that leaves no room for an answer.
void check_context(std::size_t tokens, int context, const char* field);
/// The same for a text that is not tokenized yet, by the fewest tokens that it can have.
void check_context(const Model& model, std::size_t bytes, int context, const char* field);

}  // namespace winnow::server
