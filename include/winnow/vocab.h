// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "winnow/export.h"
#include "winnow/prompt.h"

namespace winnow {

/// Tokens around the parts of a text that a model fills in; negative: the vocabulary has none.
struct InfillTokens {
  Token prefix = -1;
  Token suffix = -1;
  Token middle = -1;
  Token file = -1;
  Token repository = -1;
};

/// The vocabulary of a model (Model::vocab()). Immutable, shared by threads.
class WINNOW_EXPORT Vocab {
 public:
  Vocab() = default;
  Vocab(Vocab&&) = default;
  Vocab& operator=(Vocab&&) = default;
  virtual ~Vocab();

  /// Tokens of a text, without BOS. Throws InputError.
  virtual std::vector<Token> tokenize(std::string_view text, ControlTokens control = ControlTokens::as_text) const = 0;
  /// BOS if the GGUF asks for it, else nothing.
  virtual std::vector<Token> beginning() const = 0;
  /// EOS if the GGUF asks for it, else nothing.
  virtual std::vector<Token> ending() const = 0;
  /// Tokens of a text in which control tokens are given by name, such as a template's output. BOS comes first if the
  /// GGUF asks for it and the text does not open with it. Throws InputError.
  std::vector<Token> opening(std::string_view text) const;

  /// Bytes of one token; control tokens have none. Concatenated, they are the text. A token may end within a character
  /// of UTF-8.
  virtual std::string text(Token token) const = 0;
  /// Bytes of one token; those of a control token are its name.
  virtual std::string name(Token token) const = 0;
  /// True if generation ends with this token.
  virtual bool ends(Token token) const = 0;
  /// BOS and EOS; negative: the vocabulary has none.
  virtual Token beginning_of_text() const = 0;
  virtual Token end_of_text() const = 0;
  virtual InfillTokens infill_tokens() const = 0;

  /// Lower bound of the number of tokens of a text of `bytes` bytes.
  virtual std::size_t least_tokens(std::size_t bytes) const = 0;

  /// Source or name of the file's chat template; empty: it has none.
  virtual std::string chat_template() const = 0;
  /// Source or name of the template for requests with tools; empty: the file has none of its own.
  virtual std::string tool_use_template() const = 0;
};

}  // namespace winnow
