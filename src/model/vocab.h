// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/model_file.h"
#include "winnow/model.h"

struct llama_chat_message;
struct llama_model;
struct llama_vocab;

namespace winnow::model {

/// A GGUF's vocabulary and chat template, by libllama. Immutable, shared by threads.
class Vocab {
 public:
  /// Throws ModelError.
  explicit Vocab(const ModelFile& file);

  /// Tokens of some text, without BOS. Throws InputError.
  std::vector<Token> tokenize(std::string_view text, ControlTokens control) const;
  /// BOS where the GGUF asks for it, else nothing.
  std::vector<Token> beginning() const;
  std::string piece(Token token) const;
  /// Tokens that a text of so many bytes has at least: as many as if all were the longest one.
  std::size_t least_tokens(std::size_t bytes) const;
  bool ends(Token token) const;

  /// What the chat template puts before, between and after the contents of messages, up to where the next answer
  /// begins. The system's messages are part of that, so there is one piece more than there are messages of others.
  /// Throws UsageError when libllama does not know the template, there is none, or it leaves contents out.
  std::vector<std::string> chat_frame(std::span<const Message> messages) const;

 private:
  /// Messages in the chat template, up to where an answer begins.
  std::string rendered(const std::vector<llama_chat_message>& messages) const;

  struct Free {
    void operator()(llama_model* model) const;
  };
  std::string path_;
  std::unique_ptr<llama_model, Free> model_;
  const llama_vocab* vocab_ = nullptr;
  std::size_t longest_piece_ = 1;  ///< bytes
};

}  // namespace winnow::model
