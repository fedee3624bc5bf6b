// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/placement.h"
#include "chat/template.h"
#include "engine/model_impl.h"
#include "model/marked_text.h"
#include "winnow/conversation.h"
#include "winnow/generate.h"

namespace winnow {

/// A conversation as a model reads it: what its chat template writes, or its messages one after the other.
struct Wording {
  model::MarkedText text;
  std::vector<Message> messages;    ///< with the conversation's text before the user's first words
  std::vector<std::size_t> places;  ///< byte at which each message's words begin, without the white space around them;
                                    ///< chat::kNowhere: it has none
  chat::AnswerFormat answer = {};   ///< how the model writes what comes next
  std::set<std::string> left_out = {};  ///< keywords of schemas that the answer's grammar does not enforce

  /// Byte at which the last `size` bytes of a message begin, or where they would.
  std::size_t begin_of_last(std::size_t message, std::size_t size) const;
};

/// The text that the chat template writes. Throws chat::TemplateError where it cannot.
Wording write(const Model::Impl& model, const chat::Input& input, ControlTokens control);

/// Throws UsageError where the template cannot write it.
Wording write(const Model::Impl& model, const Conversation& conversation, chat::Ending ending);

/// Makes answers be of a format, unless they have a grammar already.
void demand(const chat::AnswerFormat& format, const model::Vocab& vocab, GenerateOptions& of);

/// Its tokens, with what every prompt begins with. Bytes of the text become the tokens that begin there or have them
/// within.
std::vector<Token> tokens_of(const model::Vocab& vocab, const model::MarkedText& text,
                             std::span<std::size_t> places = {});

/// The tokens of what comes from a byte on, for a sequence that has read what is before it.
std::vector<Token> tokens_from(const model::Vocab& vocab, const model::MarkedText& text, std::size_t byte);

}  // namespace winnow
