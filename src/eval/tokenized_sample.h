// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "eval/sample.h"
#include "winnow/questions.h"

namespace winnow::eval {

/// By what the first token of an answer is predicted.
enum class FirstToken : std::uint8_t {
  full_attention,  ///< whatever the method keeps, so that it says nothing about the method
  what_is_kept,
};

/// A sample as the model reads it, with one protocol.
struct TokenizedSample {
  const Sample* sample = nullptr;
  Prompt prompt;  ///< a text in documents: their tokens one after the other, with BOS at the very beginning alone
  std::vector<std::vector<Token>> documents;  ///< the same, each as it is read on its own, with BOS; empty: none
  Protocol protocol = Protocol::aware;
  int cut_tokens = 0;                    ///< of the prompt, to fit into the most tokens
  double read_ms = 0;                    ///< what reading took, for all methods of the group
  std::vector<FirstToken> first_tokens;  ///< of each method of the group

  /// Of the whole prompt.
  int tokens() const { return static_cast<int>(prompt.text.size() + prompt.question.size()); }
};

/// Tokenizes a sample. Of a prompt of more than `max_prompt` tokens (0: any number) the middle is cut out, as LongBench
/// does, but nothing of the question. Of documents the longest lose their middles, so that all fit with one greatest
/// length; each keeps a token. What the chat template and the sample put before the documents is a document of its own,
/// which is never cut. Throws what Model::tokenize() throws.
TokenizedSample tokenized(const Model& model, const Sample& sample, Protocol protocol, int max_prompt);

/// A hash of all tokens, and of where documents end.
std::string hash_of(const TokenizedSample& sample);

}  // namespace winnow::eval
