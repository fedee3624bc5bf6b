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

/// Tracks the thinking of an answer and ends it when it is too long. Uses llama.cpp's sampler, which detects its
/// beginning and end, and lets incomplete characters finish.
class Thinking {
 public:
  /// `vocab` outlives it. REQUIRES: the options have a start text and end texts.
  Thinking(const model::Vocab& vocab, const ThinkingOptions& options);

  /// True if thinking has begun and not ended.
  bool goes_on() const;
  /// The token that must come next; nullopt: any.
  std::optional<Token> forced() const;
  void accept(Token token);
  /// Number of thinking tokens so far, without those that begin and end it.
  int tokens() const { return tokens_; }
  /// The tokens that last ended it; empty if it has never ended.
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
