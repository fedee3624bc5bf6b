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

/// Throws UsageError for options that are invalid by themselves or for the vocabulary of this model.
void check(const GenerateOptions& options, const Model& model);

/// Nullopt if answers have no thinking.
std::optional<Thinking> thinking_of(const GenerateOptions& options, const Model& model);

/// Nullopt if the options have no grammar. Throws UsageError for a grammar that cannot be parsed.
std::optional<Grammar> grammar_of(const GenerateOptions& options, const Model& model);

/// A token of an answer and its bytes.
struct NextToken {
  GeneratedToken token;
  std::string bytes;  ///< bytes that can be sent: no stop text can begin in them
};

/// An answer that is being generated: its sampler, its stop conditions and its text so far.
class Answering {
 public:
  /// `prompt`: all tokens before the answer. `sequence` makes the seeds of several answers differ. `model` outlives it.
  /// REQUIRES: check(options, model) and grammar_of() have not thrown.
  Answering(const Model& model, const GenerateOptions& options, std::optional<Grammar> grammar,
            std::span<const Token> prompt, int sequence);

  /// Samples the next token from logits [n_vocab]. Returns null if the answer has ended without a token.
  const NextToken* take(std::span<const float> logits, Sampler::Candidates& candidates);
  bool has_ended() const { return ended_; }
  /// Steps that the grammar took for the last token.
  std::int64_t grammar_steps() const { return sampler_.grammar_steps(); }
  /// The last token that was sampled.
  Token last() const { return next_.token.chosen.id; }
  int generated() const { return static_cast<int>(generation_.tokens.size()); }

  /// The answer so far, interrupted unless it has ended. May be called once.
  Generation finish();

 private:
  /// True if the answer has its minimum length.
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
  std::vector<Token> ends_;  ///< tokens that are banned until options_.min_tokens
  NextToken next_;
  Generation generation_;
  bool ended_ = false;
};

}  // namespace winnow::engine
