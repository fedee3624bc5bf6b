// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace winnow {

/// Index into a model's vocabulary.
using Token = std::int32_t;

/// Whether names of control tokens in a user's text are plain text or control tokens.
enum class ControlTokens : std::uint8_t { as_text, parsed };

enum class PromptFormat : std::uint8_t {
  chat,  ///< the model's chat template: text, blank line and question in one user message
  raw,   ///< the text followed by the question
};

struct PromptText {
  std::string text;
  std::string question;
  std::string system;  ///< empty: the template's default
  PromptFormat format = PromptFormat::chat;
  ControlTokens control = ControlTokens::as_text;
};

/// Tokens of a prompt, in two parts so that both protocols (compress before or after the question is seen) use the same
/// tokens.
struct Prompt {
  std::vector<Token> text;
  std::vector<Token> question;  ///< with the end of the template
};

/// Tokens of a text and of several first questions about it, split like a Prompt.
struct Prompts {
  std::vector<Token> text;
  std::vector<std::vector<Token>> questions;
};

}  // namespace winnow
