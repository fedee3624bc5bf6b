// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/sampler.h"
#include "engine/stop_filter.h"
#include "engine/token_texts.h"
#include "winnow/generate.h"
#include "winnow/model.h"

namespace winnow::engine {

/// Throws UsageError for what cannot be, also with the vocabulary of this model.
void check(const GenerateOptions& options, const Model& model);

/// None: an answer has no thinking.
std::optional<Thinking> thinking_of(const GenerateOptions& options, const Model& model);

/// None: an answer may be anything. Throws UsageError for a text that is no grammar.
std::optional<Grammar> grammar_of(const GenerateOptions& options, const Model& model);

/// What a token adds to an answer.
struct NextToken {
  GeneratedToken token;
  std::string bytes;  ///< that have become sure
};

/// An answer that is being generated: its sampler, what ends it, what there is of it.
class Answering {
 public:
  /// `prompt`: all tokens before the answer. `sequence` sets the seeds of several answers apart. `model` outlives it.
  /// REQUIRES: check(options, model), grammar_of() both.
  Answering(const Model& model, const GenerateOptions& options, std::optional<Grammar> grammar,
            std::span<const Token> prompt, int sequence);

  /// Samples the next token from logits [n_vocab]. Returns it, or null when the answer has ended without it.
  const NextToken* take(std::span<const float> logits, Sampler::Candidates& candidates);
  bool has_ended() const { return ended_; }
  /// Steps of the grammar for the last token.
  std::int64_t grammar_steps() const { return sampler_.grammar_steps(); }
  /// The last token that was sampled.
  Token last() const { return next_.token.chosen.id; }
  int generated() const { return static_cast<int>(generation_.tokens.size()); }

  /// What there is of the answer, once; interrupted unless it has ended.
  Generation finish();

 private:
  /// An answer of the least length is there, so that what comes next may end it.
  bool may_end() const { return generated() >= options_.min_tokens; }
  bool is_end(Token token) const;
  bool completes_stop(Token token);
  void add(Token token, std::span<const float> logits);
  void end(FinishReason reason);

  const Model& model_;
  GenerateOptions options_;
  TokenTexts texts_;
  Sampler sampler_;
  StopFilter filter_;
  std::vector<Token> ends_;  ///< tokens that may not come before options_.min_tokens have
  NextToken next_;
  Generation generation_;
  bool ended_ = false;
};

}  // namespace winnow::engine
