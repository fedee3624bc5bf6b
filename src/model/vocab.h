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
#include "winnow/vocab.h"

struct llama_model;
struct llama_vocab;

namespace winnow::model {

/// A GGUF's vocabulary and chat template, by libllama.
class Vocab final : public winnow::Vocab {
 public:
  /// Throws ModelError.
  explicit Vocab(const ModelFile& file);

  std::vector<Token> tokenize(std::string_view text, ControlTokens control) const override;
  /// Tokens of a rendered template: names of control tokens are recognised only outside the input. The text is
  /// tokenized as a whole, as by libllama if no input has a control token's name. `places`, ascending bytes of the
  /// text, are replaced by the tokens that begin at or contain these bytes. Throws InputError.
  std::vector<Token> tokenize(const MarkedText& text, std::span<std::size_t> places) const;
  std::vector<Token> beginning() const override;
  std::vector<Token> ending() const override;
  std::string text(Token token) const override { return spelled(token, ControlNames::left_out); }
  std::string name(Token token) const override { return spelled(token, ControlNames::spelled); }
  bool ends(Token token) const override;
  Token beginning_of_text() const override;
  Token end_of_text() const override;
  InfillTokens infill_tokens() const override;
  std::size_t least_tokens(std::size_t bytes) const override;
  std::string chat_template() const override;
  std::string tool_use_template() const override;
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
