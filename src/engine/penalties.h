// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "winnow/generate.h"
#include "winnow/model.h"

struct llama_token_data;

namespace winnow::engine {

/// Adds biases to logits and takes penalties from them, in vLLM's order: biases; the repeat penalty, for tokens of the
/// prompt and the answer; the presence and frequency penalties, for tokens of the answer only. All of the prompt and of
/// the answer counts. Computes in double, and what comes out is finite for all finite options.
class Penalties {
 public:
  /// `prompt`: all tokens before the answer. REQUIRES: the tokens of both are of the vocabulary.
  Penalties(const SamplingOptions& options, std::span<const Token> prompt);

  /// Changes the logits of all tokens, [n_vocab].
  void apply(std::span<llama_token_data> candidates) const;
  /// The answer goes on with this token.
  void accept(Token token);

 private:
  float repeat_;
  float presence_;
  float frequency_;
  std::vector<std::pair<Token, float>> biases_;
  std::unordered_map<Token, int> in_answer_;  ///< times that a token came there; empty where nothing is penalised
};

}  // namespace winnow::engine
