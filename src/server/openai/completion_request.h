// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "server/openai/fields.h"
#include "winnow/model.h"

namespace winnow::server {

/// A prompt as it was sent: a text or tokens.
using PromptSource = std::variant<std::string, std::vector<Token>>;

/// Reads a field: a text, a list of tokens, or a list of so many texts or lists of tokens. Throws ApiError.
std::vector<PromptSource> read_sources(Fields& fields, const char* field, std::size_t most, int vocabulary);
/// The same of `prompt`.
std::vector<PromptSource> read_prompts(Fields& fields, int vocabulary);

/// Bytes of the longest text among prompts.
std::size_t longest_text(const std::vector<PromptSource>& prompts);

/// The tokens of a prompt. Those of a text begin with BOS where the model wants it, and the names of control tokens in
/// it are tokens, as other servers have it.
std::vector<Token> tokens_of_prompt(const Model& model, const PromptSource& prompt);

/// Throws ApiError with code context_length_exceeded for a prompt that leaves no room for an answer.
void check_context(std::size_t tokens, int context, const char* field);
/// The same for a text that is not tokenized yet, by the fewest tokens that it can have.
void check_context(const Model& model, std::size_t bytes, int context, const char* field);

}  // namespace winnow::server
