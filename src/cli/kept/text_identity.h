// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "winnow/model.h"

namespace winnow::cli {

/// Tells the text of a prompt from others, and from the same text with another template, system message or vocabulary.
struct TextIdentity {
  std::size_t tokens = 0;  ///< before any question, those of the template included; 0: the prompt has no text
  std::string hash;        ///< of these tokens, 16 hex digits; empty without a text

  bool operator==(const TextIdentity&) const = default;
};

/// Identifies the text of a conversation, whatever was said about it. Throws what Model::tokenize() throws.
TextIdentity identity_of_text(const Model& model, Conversation conversation);

}  // namespace winnow::cli
