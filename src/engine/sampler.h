// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/grammar.h"
#include "engine/penalties.h"
#include "engine/thinking.h"
#include "winnow/generate.h"
#include "winnow/model.h"

struct llama_sampler;
struct llama_token_data;

namespace winnow::engine {

/// Chooses the tokens of one answer as vLLM does: biases and penalties change the logits; a temperature below 1e-5
/// takes the largest one; otherwise the logits are divided by the temperature, min-p, top-k and top-p cut off what is
/// improbable, in this order, and a random number decides. libllama's samplers do what comes after the temperature.
class Sampler {
 public:
  /// Room for a vocabulary. Several samplers use one, so that a token costs no allocation.
  using Candidates = std::vector<llama_token_data>;

  /// `prompt`: all tokens before the answer. `sequence` sets the seeds of a batch's sequences apart. REQUIRES: options
  /// in their ranges, tokens of the vocabulary.
  Sampler(const SamplingOptions& options, std::optional<Grammar> grammar, std::span<const Token> prompt, int sequence,
          std::optional<Thinking> thinking = std::nullopt);

  Sampler(Sampler&&) noexcept;
  Sampler& operator=(Sampler&&) noexcept;
  ~Sampler();

  /// Chooses the next token from logits [n_vocab], none of the `banned`, and remembers it for the penalties, the
  /// grammar and the thinking. A token that ends the thinking comes whatever the logits are, unless the grammar forbids
  /// it. None: nothing more is allowed.
  std::optional<Token> sample(std::span<const float> logits, std::span<const Token> banned, Candidates& candidates);
  /// Steps of the grammar for the last token; 0 without one.
  std::int64_t grammar_steps() const { return grammar_ ? grammar_->steps() : 0; }
  /// Tokens of the thinking so far.
  int thinking_tokens() const { return thinking_ ? thinking_->tokens() : 0; }

 private:
  /// The token that ends the thinking, where it must.
  std::optional<Token> forced();
  void accept(Token token);
  void fill(Candidates& candidates, std::span<const float> logits, std::span<const Token> banned) const;
  /// Leaves those that the grammar allows, up to where none can be chosen that follows.
  void keep_allowed(Candidates& candidates);
  bool may_choose_more(const Candidates& allowed, const llama_token_data& next) const;
  Token choose(Candidates& candidates);

  struct Free {
    void operator()(llama_sampler* chain) const;
  };
  Penalties penalties_;
  float temperature_;
  std::size_t top_k_;
  double least_difference_;                     ///< of a logit to the largest one, divided by the temperature
  std::unique_ptr<llama_sampler, Free> chain_;  ///< null where the largest logit is taken
  std::optional<Grammar> grammar_;
  std::optional<Thinking> thinking_;
};

/// The chosen token's natural-log probability and those of the `count` most probable tokens, computed in double.
GeneratedToken log_probabilities(std::span<const float> logits, Token chosen, int count);

}  // namespace winnow::engine
