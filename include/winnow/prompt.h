// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace winnow {

/// Index into a model's vocabulary.
using Token = std::int32_t;

/// Whether the names of control tokens in a user's text are text or tokens.
enum class ControlTokens : std::uint8_t { as_text, parsed };

enum class PromptFormat : std::uint8_t {
  chat,  ///< the model's chat template: text, blank line, question in one user message
  raw,   ///< the bytes of the text followed by the bytes of the question
};

struct PromptText {
  std::string text;
  std::string question;
  std::string system;  ///< empty: what the model's own template inserts
  PromptFormat format = PromptFormat::chat;
  ControlTokens control = ControlTokens::as_text;
};

/// A prompt, tokenised in two parts so that both protocols (compress before or after the question is seen) see the same
/// tokens.
struct Prompt {
  std::vector<Token> text;
  std::vector<Token> question;  ///< with the template's closing part
};

/// A text and several first questions about it, tokenised like a Prompt.
struct Prompts {
  std::vector<Token> text;
  std::vector<std::vector<Token>> questions;
};

}  // namespace winnow
