// SPDX-License-Identifier: Apache-2.0
#include "engine/answering.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/model_impl.h"
#include "winnow/error.h"

namespace winnow::engine {

void check(const GenerateOptions& options, const Model& model) {
  const int vocabulary = model.info().n_vocab;
  options.check();
  grammar_of(options, model);
  const auto check_all = [vocabulary](std::span<const Token> tokens, const char* kind) {
    for (const Token token : tokens) {
      if (token < 0 || token >= vocabulary)
        throw UsageError(fmt::format("the {} token {} is not in the vocabulary of {} tokens", kind, token, vocabulary));
    }
  };
  check_all(options.preserved_tokens, "preserved");
  check_all(options.thinking.start, "thinking's");
  for (const auto& end : options.thinking.ends) check_all(end, "thinking's");
  for (const auto& [token, bias] : options.sampling.logit_bias) {
    if (token < 0 || token >= vocabulary)
      throw UsageError(
          fmt::format("there is a bias for token {}, which is not in the vocabulary of {} tokens", token, vocabulary));
    if (!std::isfinite(bias)) throw UsageError(fmt::format("the bias for token {} is {}, not a number", token, bias));
  }
}

std::optional<Thinking> thinking_of(const GenerateOptions& options, const Model& model) {
  if (options.thinking.start.empty() || options.thinking.ends.empty()) return std::nullopt;
  return Thinking(model.impl().vocab, options.thinking);
}

std::optional<Grammar> grammar_of(const GenerateOptions& options, const Model& model) {
  if (options.grammar.empty()) return std::nullopt;
  return Grammar(model.impl().vocab, options);
}

Answering::Answering(const Model& model, const GenerateOptions& options, std::optional<Grammar> grammar,
                     std::span<const Token> prompt, int sequence)
    : model_(model),
      options_(options),
      texts_(model.impl().vocab, options.preserved_tokens),
      sampler_(options.sampling, std::move(grammar), prompt, sequence, thinking_of(options, model)),
      filter_(options.stop) {
  for (Token token = 0; options.min_tokens > 0 && token < model.info().n_vocab; ++token) {
    if (is_end(token)) ends_.push_back(token);
  }
  if (options.max_tokens == 0) end(FinishReason::length);
}

const NextToken* Answering::take(std::span<const float> logits, Sampler::Candidates& candidates) {
  const auto token =
      sampler_.sample(logits, may_end() ? std::span<const Token>() : std::span<const Token>(ends_), candidates);
  if (!token || is_end(*token)) {
    end(FinishReason::stop);
    return nullptr;
  }
  next_ = {{{*token, 0}, {}}, {}};
  add(*token, logits);
  return &next_;
}

bool Answering::is_end(Token token) const {
  const auto& stops = options_.stop_tokens;
  return (options_.end == EndOfSequence::stops && model_.vocab().ends(token)) ||
         std::find(stops.begin(), stops.end(), token) != stops.end();
}

/// As in vLLM, only a token after the minimum length can complete a stop text.
bool Answering::completes_stop(Token token) {
  if (may_end()) return filter_.take(texts_.of(token));
  filter_.pass(texts_.of(token));
  return false;
}

void Answering::add(Token token, std::span<const float> logits) {
  const bool stops = completes_stop(token);
  generation_.tokens.push_back(token);
  if (options_.logprobs > 0) {
    next_.token = log_probabilities(logits, token, options_.logprobs);
    generation_.logprobs.push_back(next_.token);
  }
  if (stops) return end(FinishReason::stop);
  next_.bytes = filter_.release();
  generation_.text += next_.bytes;
  if (generated() >= options_.max_tokens) end(FinishReason::length);
}

void Answering::end(FinishReason reason) {
  ended_ = true;
  generation_.finish = reason;
}

Generation Answering::finish() {
  if (!ended_) end(FinishReason::interrupted);
  generation_.text += filter_.finish();
  generation_.thinking_tokens = sampler_.thinking_tokens();
  return std::move(generation_);
}

}  // namespace winnow::engine
