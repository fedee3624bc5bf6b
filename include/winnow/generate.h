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

/// Options of sampling, applied in vLLM's order: biases, penalties, temperature, min-p, top-k, top-p. A temperature
/// below 1e-5 is greedy and ignores the filters.
struct WINNOW_EXPORT SamplingOptions {
  float temperature = 0;
  int top_k = 40;
  float top_p = 0.95F;
  float min_p = 0.05F;
  float repeat_penalty = 1;  ///< divides positive logits of tokens in the cache or the answer; multiplies negative ones
  float presence_penalty = 0;                            ///< subtracted from the logit of each token of the answer
  float frequency_penalty = 0;                           ///< the same, times the token's count in the answer
  std::vector<std::pair<Token, float>> logit_bias = {};  ///< added to the logits of these tokens
  std::uint32_t seed = 0;

  /// Throws UsageError for a value out of its range.
  void check() const;
};

/// Where the thinking begins: in the answer or in the prompt.
enum class ThinkingBegin : std::uint8_t { answer, prompt };

/// Delimiters and limit of an answer's thinking.
struct ThinkingOptions {
  std::vector<Token> start = {};                 ///< tokens that begin the thinking; empty: answers have none
  std::vector<std::vector<Token>> ends = {};     ///< alternative token sequences that end it
  ThinkingBegin begins = ThinkingBegin::answer;  ///< `prompt`: the prompt ends within the thinking
  std::optional<int> most_tokens = {};  ///< limit in tokens, after which the first of `ends` is forced; none: no limit
};

/// Effect of an end-of-sequence token. If ignored, a grammar never allows it.
enum class EndOfSequence : std::uint8_t { stops, ignored };

struct WINNOW_EXPORT GenerateOptions {
  int max_tokens = 256;
  SamplingOptions sampling;
  std::vector<std::string> stop;        ///< texts that end the answer; they are not part of it
  std::vector<Token> stop_tokens = {};  ///< tokens that end the answer; they are not part of it
  EndOfSequence end = EndOfSequence::stops;
  int min_tokens = 0;  ///< before these, neither a token nor a stop text ends the answer
  int logprobs = 0;    ///< alternatives to report for each token; 0: none
  /// GBNF grammar (llama.cpp's notation) of the answer with a rule `root`; empty: no grammar. The answer ends where the
  /// grammar allows nothing more. Log probabilities are the model's own, without the grammar.
  std::string grammar = {};
  /// Regular expressions (ECMAScript) that make the grammar lazy: the answer is free until one of them matches. The
  /// grammar applies from the first non-empty group of the match, or from its beginning. Only the last 256 bytes of the
  /// answer are searched.
  std::vector<std::string> grammar_triggers = {};
  /// End of the prompt that the grammar covers, too. REQUIRES: empty if there are triggers.
  std::string grammar_prefix = {};
  /// Control tokens that appear by name in the answer's text; all others give no text.
  std::vector<Token> preserved_tokens = {};
  /// A lazy grammar ignores triggers within the thinking.
  ThinkingOptions thinking = {};

  /// Throws UsageError for a value out of range. generate() does the same, and for an invalid grammar.
  void check() const;
};

enum class FinishReason : std::uint8_t { stop, length, interrupted };

/// `stop`, `length` or `interrupted`.
constexpr const char* name_of(FinishReason reason) {
  return reason == FinishReason::stop ? "stop" : reason == FinishReason::length ? "length" : "interrupted";
}

/// A token with its natural-log probability in the model's softmax, without any sampling option.
struct TokenLogprob {
  Token id = 0;
  double logprob = 0;
};

struct GeneratedToken {
  TokenLogprob chosen;
  std::vector<TokenLogprob> top;  ///< the `logprobs` most probable tokens, most probable first
};

struct Generation {
  std::string text;
  std::vector<Token> tokens;
  std::vector<GeneratedToken> logprobs;  ///< empty unless requested
  FinishReason finish = FinishReason::length;
  int thinking_tokens = 0;  ///< tokens of the thinking, if the options have its delimiters
};

/// Gets the index of a sequence and the next bytes of its answer. Bytes that may begin a stop text are held back.
using OnText = std::function<void(int, std::string_view)>;

/// Generates answers for a batch: caches[i] continues after logits[i] ([n_vocab], of its last token). Sequences that
/// end leave the batch. If the session is stopped, the partial answers are returned with FinishReason::interrupted.
WINNOW_EXPORT std::vector<Generation> generate(Session& session, std::span<Cache* const> caches,
                                               std::span<const std::vector<float>> logits,
                                               const GenerateOptions& options, const OnText& on_text = {});

}  // namespace winnow
