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

/// A conversation as text: the output of its chat template, or its messages one after the other.
struct Wording {
  model::MarkedText text;
  std::vector<Message> messages;    ///< with the conversation's text before the first user message
  std::vector<std::size_t> places;  ///< byte at which each message's words begin, without the white space around them;
                                    ///< chat::kNowhere: it has none
  chat::AnswerFormat answer = {};   ///< format of the next answer
  std::set<std::string> left_out = {};  ///< schema keywords that the answer's grammar does not enforce

  /// First byte of the last `size` bytes of a message; if the template leaves them out, the byte where they would be.
  std::size_t begin_of_last(std::size_t message, std::size_t size) const;
};

/// Applies the chat template. Throws chat::TemplateError.
Wording write(const Model& model, const chat::Input& input, ControlTokens control);

/// Throws UsageError if the template fails.
Wording write(const Model& model, const Conversation& conversation, chat::Ending ending);

/// Constrains answers to a format, unless they have a grammar already.
void demand(const chat::AnswerFormat& format, const Model& model, GenerateOptions& of);

/// Tokenizes a text, with the tokens that begin every prompt. Bytes in `places` are replaced by the index of the token
/// that begins there or contains them.
std::vector<Token> tokens_of(const model::Vocab& vocab, const model::MarkedText& text,
                             std::span<std::size_t> places = {});
std::vector<Token> tokens_of(const Model& model, const model::MarkedText& text, std::span<std::size_t> places = {});

/// Tokens of the text from a byte on, for a sequence that has read the text before it.
std::vector<Token> tokens_from(const model::Vocab& vocab, const model::MarkedText& text, std::size_t byte);

}  // namespace winnow
