// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace winnow {

/// Boundaries of words, sentences and lines in a token's text. Words consist of ASCII letters, digits, `_` and `-`, so
/// a number, a hexadecimal string or an identifier is one word, whatever its number of tokens.
struct TokenClass {
  bool begins_in_word : 1 = false;  ///< first byte belongs to a word
  bool ends_in_word : 1 = false;    ///< last byte belongs to a word
  bool ends_sentence : 1 = false;   ///< last punctuation mark is `.`, `!` or `?`, and no word follows it
  bool ends_line : 1 = false;       ///< has a line break, or gives no text, like control tokens

  bool operator==(const TokenClass&) const = default;
};

}  // namespace winnow
