// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/vocab.h"

namespace winnow::engine {

/// The bytes that tokens add to an answer. Preserved control tokens add their names, other control tokens nothing.
class TokenTexts {
 public:
  /// `vocab` outlives it.
  TokenTexts(const model::Vocab& vocab, std::span<const Token> preserved)
      : vocab_(&vocab), preserved_(preserved.begin(), preserved.end()) {
    std::ranges::sort(preserved_);
  }

  std::string of(Token token) const { return is_preserved(token) ? vocab_->name(token) : vocab_->text(token); }
  /// First byte of the token's text; nullopt if it has none.
  std::optional<unsigned char> first_byte(Token token) const {
    if (!is_preserved(token)) return vocab_->first_byte(token);
    const std::string name = vocab_->name(token);
    return name.empty() ? std::nullopt : std::optional(static_cast<unsigned char>(name.front()));
  }

 private:
  bool is_preserved(Token token) const { return std::ranges::binary_search(preserved_, token); }

  const model::Vocab* vocab_;
  std::vector<Token> preserved_;  ///< ascending
};

}  // namespace winnow::engine
