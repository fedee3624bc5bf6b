// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "winnow/generate.h"
#include "winnow/model.h"

struct llama_token_data;

namespace winnow::engine {

/// Adds biases to logits and subtracts penalties, in vLLM's order: biases; the repeat penalty, for tokens of the prompt
/// and the answer; the presence and frequency penalties, for tokens of the answer only. The whole prompt and answer
/// count. Computes in double. Results are finite for all finite options.
class Penalties {
 public:
  /// `prompt`: all tokens before the answer. REQUIRES: tokens of the vocabulary.
  Penalties(const SamplingOptions& options, std::span<const Token> prompt);

  /// Changes the logits of all tokens, [n_vocab].
  void apply(std::span<llama_token_data> candidates) const;
  /// Records the next token of the answer.
  void accept(Token token);

 private:
  float repeat_;
  float presence_;
  float frequency_;
  std::vector<std::pair<Token, float>> biases_;
  std::unordered_map<Token, int> in_answer_;  ///< count of each token; empty if nothing is penalised
};

}  // namespace winnow::engine
