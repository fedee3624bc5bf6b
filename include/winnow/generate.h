// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "winnow/export.h"
#include "winnow/session.h"

namespace winnow {

/// As in vLLM: biases, penalties, temperature, min-p, top-k, top-p, in this order. A temperature below 1e-5 is greedy
/// and ignores what comes after it.
struct WINNOW_EXPORT SamplingOptions {
  float temperature = 0;
  int top_k = 40;
  float top_p = 0.95F;
  float min_p = 0.05F;
  float repeat_penalty = 1;  ///< divides positive logits of tokens that the cache or the answer has; multiplies others
  float presence_penalty = 0;                            ///< taken from the logit of each token that the answer has
  float frequency_penalty = 0;                           ///< the same, for each time that the answer has it
  std::vector<std::pair<Token, float>> logit_bias = {};  ///< added to the logits of these tokens
  std::uint32_t seed = 0;

  /// Throws UsageError for a value out of its range.
  void check() const;
};

/// Where an answer's thinking begins.
enum class ThinkingBegin : std::uint8_t { answer, prompt };

/// The thinking of an answer, which stands between tokens.
struct ThinkingOptions {
  std::vector<Token> start = {};                 ///< that begin it; empty: answers have none
  std::vector<std::vector<Token>> ends = {};     ///< each of which ends it
  ThinkingBegin begins = ThinkingBegin::answer;  ///< `prompt`: the prompt ends within it
  std::optional<int> most_tokens = {};  ///< after them the first of `ends` comes; none: it may be of any length
};

/// Effect of an end-of-sequence token. Where it is ignored, a grammar never lets it come.
enum class EndOfSequence : std::uint8_t { stops, ignored };

struct WINNOW_EXPORT GenerateOptions {
  int max_tokens = 256;
  SamplingOptions sampling;
  std::vector<std::string> stop;        ///< texts that end the answer; they are not part of it
  std::vector<Token> stop_tokens = {};  ///< tokens that end the answer; they are not part of it
  EndOfSequence end = EndOfSequence::stops;
  int min_tokens = 0;  ///< before these, neither a token nor a stop text ends the answer
  int logprobs = 0;    ///< alternatives to report for each token; 0: none
  /// Grammar of the answer: GBNF, llama.cpp's notation of grammars, with a rule `root`; empty: anything. The answer
  /// ends where nothing more is allowed. Log probabilities stay those of the model, as if all tokens were allowed.
  std::string grammar = {};
  /// Regular expressions (ECMAScript) that make the grammar lazy: anything may come before one of them is found. What
  /// the grammar is about begins with its first group that is not empty, or with all of it. They are looked for in the
  /// last 256 bytes of the answer.
  std::vector<std::string> grammar_triggers = {};
  /// The end of the prompt, with which the grammar begins. Only without triggers.
  std::string grammar_prefix = {};
  /// Control tokens whose names are part of the answer's text; others give none.
  std::vector<Token> preserved_tokens = {};
  /// A lazy grammar looks for its triggers outside of the thinking.
  ThinkingOptions thinking = {};

  /// Throws UsageError for a value out of its range. generate() does so, too, and for a grammar that cannot be read.
  void check() const;
};

enum class FinishReason : std::uint8_t { stop, length, interrupted };

/// `stop`, `length` or `interrupted`.
constexpr const char* name_of(FinishReason reason) {
  return reason == FinishReason::stop ? "stop" : reason == FinishReason::length ? "length" : "interrupted";
}

/// A token with its natural-log probability under the model's plain softmax.
struct TokenLogprob {
  Token id = 0;
  double logprob = 0;
};

struct GeneratedToken {
  TokenLogprob chosen;
  std::vector<TokenLogprob> top;  ///< the `logprobs` most probable, falling
};

struct Generation {
  std::string text;
  std::vector<Token> tokens;
  std::vector<GeneratedToken> logprobs;  ///< empty unless asked for
  FinishReason finish = FinishReason::length;
  int thinking_tokens = 0;  ///< of them, where the options say how thinking is told
};

/// Gets the bytes of an answer as they are sure (a stop text that may be beginning is held back): sequence index,
/// bytes.
using OnText = std::function<void(int, std::string_view)>;

/// Generates answers for a batch: caches[i] goes on after logits[i] ([n_vocab], of its last token). Sequences that end
/// leave the batch. When the session is stopped, what there is so far is returned with FinishReason::interrupted.
WINNOW_EXPORT std::vector<Generation> generate(Session& session, std::span<Cache* const> caches,
                                               std::span<const std::vector<float>> logits,
                                               const GenerateOptions& options, const OnText& on_text = {});

}  // namespace winnow
