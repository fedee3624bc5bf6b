// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "winnow/model.h"

namespace winnow::cli {

/// Identifies the text of a prompt, together with its template, system message and vocabulary.
struct TextIdentity {
  std::size_t tokens = 0;  ///< before any question, including those of the template; 0: the prompt has no text
  std::string hash;        ///< of these tokens, 16 hex digits; empty without a text

  bool operator==(const TextIdentity&) const = default;
};

/// The identity of a conversation's text, whatever its messages. Throws what Model::tokenize() throws.
TextIdentity identity_of_text(const Model& model, Conversation conversation);

}  // namespace winnow::cli
