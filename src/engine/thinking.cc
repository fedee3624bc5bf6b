// SPDX-License-Identifier: Apache-2.0
#include "engine/thinking.h"

#include <llama.h>
#include <reasoning-budget.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace winnow::engine {

namespace {

common_reasoning_budget_state first_state(const ThinkingOptions& options) {
  return options.begins == ThinkingBegin::prompt ? REASONING_BUDGET_COUNTING : REASONING_BUDGET_IDLE;
}

}  // namespace

void Thinking::Free::operator()(llama_sampler* sampler) const { llama_sampler_free(sampler); }

Thinking::Thinking(const model::Vocab& vocab, const ThinkingOptions& options)
    : forced_(options.ends.front()),
      sampler_(common_reasoning_budget_init(vocab.handle(), {options.start}, options.ends, forced_,
                                            options.most_tokens.value_or(std::numeric_limits<int>::max()),
                                            first_state(options))) {}

bool Thinking::goes_on() const {
  const auto state = common_reasoning_budget_get_state(sampler_.get());
  return state != REASONING_BUDGET_IDLE && state != REASONING_BUDGET_DONE;
}

std::optional<Token> Thinking::forced() const {
  if (common_reasoning_budget_get_state(sampler_.get()) != REASONING_BUDGET_FORCING) return std::nullopt;
  std::vector<llama_token_data> candidates;
  for (const Token token : forced_) candidates.push_back({token, 0, 0});
  llama_token_data_array array{candidates.data(), candidates.size(), -1, false};
  llama_sampler_apply(sampler_.get(), &array);
  const auto left =
      std::ranges::find_if(candidates, [](const auto& candidate) { return std::isfinite(candidate.logit); });
  return left == candidates.end() ? std::nullopt : std::optional<Token>(left->id);
}

void Thinking::accept(Token token) {
  const bool went_on = goes_on();
  llama_sampler_accept(sampler_.get(), token);
  if (!went_on) return;
  ++tokens_;
  if (!goes_on()) tokens_ -= static_cast<int>(end().size());
}

std::span<const Token> Thinking::end() const {
  const auto* const tokens = common_reasoning_budget_get_end_match(sampler_.get());
  return tokens == nullptr ? std::span<const Token>() : std::span<const Token>(*tokens);
}

}  // namespace winnow::engine
