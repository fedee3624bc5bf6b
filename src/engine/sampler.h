// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/grammar.h"
#include "engine/penalties.h"
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

  /// Throws UsageError for options out of range and for a grammar that cannot be read. `prompt`: all tokens before the
  /// answer. `sequence` sets the seeds of a batch's sequences apart. `model` outlives it. REQUIRES: the tokens of
  /// logit_bias are of the vocabulary.
  Sampler(const Model& model, const GenerateOptions& options, std::span<const Token> prompt, int sequence);

  Sampler(Sampler&&) noexcept;
  Sampler& operator=(Sampler&&) noexcept;
  ~Sampler();

  /// Chooses the next token from logits [n_vocab], none of the `banned`, and remembers it for the penalties and the
  /// grammar. None: nothing more is allowed.
  std::optional<Token> sample(std::span<const float> logits, std::span<const Token> banned, Candidates& candidates);

 private:
  void fill(Candidates& candidates, std::span<const float> logits, std::span<const Token> banned) const;
  Token choose(Candidates& candidates);

  struct Free {
    void operator()(llama_sampler* chain) const;
  };
  Penalties penalties_;
  float temperature_;
  std::unique_ptr<llama_sampler, Free> chain_;  ///< null where the largest logit is taken
  std::optional<Grammar> grammar_;
};

/// The chosen token's natural-log probability and those of the `count` most probable tokens, computed in double.
GeneratedToken log_probabilities(std::span<const float> logits, Token chosen, int count);

}  // namespace winnow::engine
