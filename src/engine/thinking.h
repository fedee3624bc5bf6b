// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "model/vocab.h"
#include "winnow/generate.h"

struct llama_sampler;

namespace winnow::engine {

/// Follows the thinking of an answer, and ends it where it is too long. llama.cpp's sampler for that says where it
/// begins and ends, and whether a character must be completed before.
class Thinking {
 public:
  /// `vocab` outlives it. REQUIRES: the options have a start and ends.
  Thinking(const model::Vocab& vocab, const ThinkingOptions& options);

  /// Whether it has begun and not ended.
  bool goes_on() const;
  /// The token that must come next; none: any.
  std::optional<Token> forced() const;
  void accept(Token token);
  /// Tokens of all thinking so far, without those that begin and end it.
  int tokens() const { return tokens_; }
  /// The tokens that have ended it last; empty: nothing has.
  std::span<const Token> end() const;

 private:
  struct Free {
    void operator()(llama_sampler* sampler) const;
  };
  std::vector<Token> forced_;
  std::unique_ptr<llama_sampler, Free> sampler_;
  int tokens_ = 0;
};

}  // namespace winnow::engine
