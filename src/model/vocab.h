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

/// A GGUF's vocabulary and chat template, by libllama. Immutable, thread-safe.
class Vocab {
 public:
  /// Throws ModelError.
  explicit Vocab(const ModelFile& file);

  /// Tokens of a text, without BOS. Throws InputError.
  std::vector<Token> tokenize(std::string_view text, ControlTokens control) const;
  /// Tokens of a rendered template: names of control tokens are recognised only outside the input. The text is
  /// tokenized as a whole, as by libllama if no input has a control token's name. `places`, ascending bytes of the
  /// text, are replaced by the tokens that begin at or contain these bytes. Throws InputError.
  std::vector<Token> tokenize(const MarkedText& text, std::span<std::size_t> places) const;
  /// BOS if the GGUF requests it, else empty.
  std::vector<Token> beginning() const;
  /// Tokens that a prompt begins with: BOS if the GGUF requests it, and a text in which control tokens are recognised
  /// by name, such as a template's. The text may begin with BOS itself.
  std::vector<Token> opening(std::string_view text) const;
  std::string token_text(Token token) const;
  /// The same, but a control token gives its name.
  std::string name(Token token) const;
  /// Negative if the vocabulary has none.
  Token beginning_of_text() const;
  Token end_of_text() const;
  /// The template's source, or its name; empty: none.
  std::string chat_template() const;
  /// The separate template for requests with tools, if there is one.
  std::string tool_use_template() const;
  /// Lower bound of the number of tokens of a text: as if all were the longest one.
  std::size_t least_tokens(std::size_t bytes) const;
  bool ends(Token token) const;
  /// False for tokens without text, such as control tokens.
  bool has_text(Token token) const;
  /// The first byte of its text; empty if it has no text.
  std::optional<unsigned char> first_byte(Token token) const;
  /// Class of a token; for ids beyond the vocabulary, the default.
  TokenClass class_of(Token token) const;
  /// Access to further functions of libllama.
  const llama_vocab* handle() const { return vocab_; }

 private:
  /// Replaces bytes of a stretch of text by the tokens that contain them; `before` tokens precede the stretch.
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
  std::size_t longest_text_ = 1;                           ///< bytes
  std::vector<TokenClass> classes_;                        ///< [tokens]
  std::vector<std::optional<unsigned char>> first_bytes_;  ///< [tokens]
};

}  // namespace winnow::model
