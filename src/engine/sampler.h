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

/// Chooses the tokens of one answer as vLLM does. Biases and penalties change the logits. With a temperature below 1e-5
/// the largest logit is taken. Otherwise the logits are divided by the temperature, filtered by min-p, top-k and top-p,
/// in this order, and sampled. libllama's samplers do the steps after the temperature.
class Sampler {
 public:
  /// Buffer for a vocabulary, shared by several samplers so that a token costs no allocation.
  using Candidates = std::vector<llama_token_data>;

  /// `prompt`: all tokens before the answer. `sequence` makes the seeds of a batch's sequences differ. REQUIRES:
  /// options in their ranges, tokens of the vocabulary.
  Sampler(const SamplingOptions& options, std::optional<Grammar> grammar, std::span<const Token> prompt, int sequence,
          std::optional<Thinking> thinking = std::nullopt);

  Sampler(Sampler&&) noexcept;
  Sampler& operator=(Sampler&&) noexcept;
  ~Sampler();

  /// Chooses the next token from logits [n_vocab], except the `banned` ones, and updates penalties, grammar and
  /// thinking. A token that must end the thinking is chosen whatever the logits are, unless the grammar forbids it.
  /// Nullopt if no token is allowed.
  std::optional<Token> sample(std::span<const float> logits, std::span<const Token> banned, Candidates& candidates);
  /// Steps that the grammar took for the last token; 0 without one.
  std::int64_t grammar_steps() const { return grammar_ ? grammar_->steps() : 0; }
  /// Number of thinking tokens so far.
  int thinking_tokens() const { return thinking_ ? thinking_->tokens() : 0; }

 private:
  /// The token that must come next to end the thinking, if any.
  std::optional<Token> forced();
  void accept(Token token);
  void fill(Candidates& candidates, std::span<const float> logits, std::span<const Token> banned) const;
  /// Keeps the candidates that the grammar allows, until no later one can be chosen.
  void keep_allowed(Candidates& candidates);
  bool may_choose_more(const Candidates& allowed, const llama_token_data& next) const;
  Token choose(Candidates& candidates);

  struct Free {
    void operator()(llama_sampler* chain) const;
  };
  Penalties penalties_;
  float temperature_;
  std::size_t top_k_;
  double least_difference_;  ///< least (logit - largest logit) / temperature that min-p may let through
  std::unique_ptr<llama_sampler, Free> chain_;  ///< null if the largest logit is taken
  std::optional<Grammar> grammar_;
  std::optional<Thinking> thinking_;
};

/// Natural-log probabilities of the chosen token and of the `count` most probable ones, computed in double.
GeneratedToken log_probabilities(std::span<const float> logits, Token chosen, int count);

}  // namespace winnow::engine
