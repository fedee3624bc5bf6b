// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "winnow/generate.h"

struct llama_sampler;
struct llama_token_data;

namespace winnow::engine {

/// libllama's sampler chain for one sequence.
class Sampler {
 public:
  /// Throws UsageError for options out of range. `sequence` sets the seeds of a batch's sequences apart.
  Sampler(const SamplingOptions& options, int vocabulary, int sequence);

  Sampler(Sampler&&) noexcept;
  Sampler& operator=(Sampler&&) noexcept;
  ~Sampler();

  /// Chooses the next token from logits [n_vocab] and remembers it for the repeat penalty.
  Token sample(std::span<const float> logits);

 private:
  struct Free {
    void operator()(llama_sampler* chain) const;
  };
  std::unique_ptr<llama_sampler, Free> chain_;
  std::vector<llama_token_data> candidates_;  ///< kept, so that a token costs no allocation
};

/// The chosen token's natural-log probability and those of the `count` most probable tokens, computed in double.
GeneratedToken log_probabilities(std::span<const float> logits, Token chosen, int count);

}  // namespace winnow::engine
