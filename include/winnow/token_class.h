// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace winnow {

/// Ends of words, sentences and lines, by the token's text. Letters, digits, `_` and `-` of ASCII make
/// words, so that a number, a hexadecimal string and an identifier are one word each, in however many tokens.
struct TokenClass {
  bool begins_in_word : 1 = false;  ///< its first byte belongs to a word
  bool ends_in_word : 1 = false;    ///< its last byte belongs to a word
  bool ends_sentence : 1 = false;   ///< its last mark is `.`, `!` or `?`, where no word goes on after it
  bool ends_line : 1 = false;  ///< it has a line break, or stands for nothing that is written, as control tokens do

  bool operator==(const TokenClass&) const = default;
};

}  // namespace winnow
