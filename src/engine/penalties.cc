// SPDX-License-Identifier: Apache-2.0
#include "engine/penalties.h"

#include <llama.h>

#include <algorithm>
#include <limits>

namespace winnow::engine {

namespace {

float finite_logit(double logit) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(logit, -kLargest, kLargest));
}

}  // namespace

Penalties::Penalties(const SamplingOptions& options, std::span<const Token> prompt)
    : repeat_(options.repeat_penalty),
      presence_(options.presence_penalty),
      frequency_(options.frequency_penalty),
      biases_(options.logit_bias) {
  if (repeat_ == 1) return;
  for (const Token token : prompt) in_answer_.try_emplace(token);
}

void Penalties::apply(std::span<llama_token_data> candidates) const {
  for (const auto& [token, bias] : biases_)
    candidates[token].logit = finite_logit(double{candidates[token].logit} + bias);
  for (const auto& [token, times] : in_answer_) {
    double logit = candidates[token].logit;
    logit = logit > 0 ? logit / repeat_ : logit * repeat_;
    if (times > 0) logit -= double{presence_} + double{frequency_} * times;
    candidates[token].logit = finite_logit(logit);
  }
}

void Penalties::accept(Token token) {
  if (repeat_ == 1 && presence_ == 0 && frequency_ == 0) return;
  ++in_answer_[token];
}

}  // namespace winnow::engine
