// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "server/openai/fields.h"
#include "winnow/model.h"

namespace winnow::server {

/// A prompt as the client sent it: a text or tokens.
using PromptSource = std::variant<std::string, std::vector<Token>>;

/// Reads a field: a text, a list of tokens, or a list of at most `most` texts or lists of tokens. Throws ApiError.
std::vector<PromptSource> read_sources(Fields& fields, const char* field, std::size_t most, int vocabulary);
/// The same for the field `prompt`.
std::vector<PromptSource> read_prompts(Fields& fields, int vocabulary);

/// Bytes of the longest text among prompts.
std::size_t longest_text(const std::vector<PromptSource>& prompts);

/// Tokens of a prompt. A text begins with BOS if the model wants it. Names of control tokens in it become these tokens,
/// as in other servers.
std::vector<Token> tokens_of_prompt(const Model& model, const PromptSource& prompt);

/// Throws ApiError with code context_length_exceeded if a prompt leaves no room for an answer.
void check_context(std::size_t tokens, int context, const char* field);
/// The same before tokenization, by the fewest tokens that a text of `bytes` can have.
void check_context(const Model& model, std::size_t bytes, int context, const char* field);

}  // namespace winnow::server
