// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/marked_text.h"
#include "model/model_file.h"
#include "winnow/error.h"
#include "winnow/model.h"
#include "winnow/token_class.h"

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
  /// Tokens of what a template has written: control tokens have their names outside of the input only. The text is
  /// tokenized as a whole, as by libllama where no input has the name of a control token. `places`, bytes of the text
  /// in order, become the tokens that begin at these bytes or have them within. Throws InputError.
  std::vector<Token> tokenize(const MarkedText& text, std::span<std::size_t> places) const;
  /// BOS where the GGUF asks for it, else nothing.
  std::vector<Token> beginning() const;
  /// Tokens that a prompt begins with: BOS if the GGUF requests it, and a text in which control tokens are recognised
  /// by name, such as a template's. The text may begin with BOS itself.
  std::vector<Token> opening(std::string_view text) const;
  std::string piece(Token token) const;
  /// The same, but a control token gives its name.
  std::string name(Token token) const;
  /// Negative where the vocabulary has none.
  Token beginning_of_text() const;
  Token end_of_text() const;
  /// The template's source, or its name; empty: there is none.
  std::string chat_template() const;
  /// The same of the template for requests with tools, if they have one of their own.
  std::string tool_use_template() const;
  /// Tokens that a text of so many bytes has at least: as many as if all were the longest one.
  std::size_t least_tokens(std::size_t bytes) const;
  bool ends(Token token) const;
  /// False for those that stand for nothing that is written, such as control tokens.
  bool has_text(Token token) const;
  /// The first byte of its text; none where it has no text.
  std::optional<unsigned char> first_byte(Token token) const;
  /// Of one beyond the vocabulary: as if nothing were known of it.
  TokenClass class_of(Token token) const;
  /// For what libllama does with a vocabulary.
  const llama_vocab* handle() const { return vocab_; }

 private:
  /// Makes bytes of a stretch of text the tokens of the stretch that have them; `before` tokens stand before it.
  void find_tokens(std::span<const Token> tokens, MarkedText::Stretch of, std::size_t before,
                   std::span<std::size_t> places) const;
  enum class ControlNames : std::uint8_t { left_out, spelled };
  std::string spelled(Token token, ControlNames control) const;

  struct Free {
    void operator()(llama_model* model) const;
  };
  std::string path_;
  std::unique_ptr<llama_model, Free> model_;
  const llama_vocab* vocab_ = nullptr;
  std::size_t longest_piece_ = 1;                          ///< bytes
  std::vector<TokenClass> classes_;                        ///< [tokens]
  std::vector<std::optional<unsigned char>> first_bytes_;  ///< [tokens]
};

}  // namespace winnow::model
