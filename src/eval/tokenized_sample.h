// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "eval/sample.h"
#include "winnow/questions.h"

namespace winnow::eval {

/// The attention that predicts the first token of an answer.
enum class FirstToken : std::uint8_t {
  full_attention,  ///< the same for all methods, so that it says nothing about them
  what_is_kept,
};

/// A sample's tokens, with one protocol.
struct TokenizedSample {
  const Sample* sample = nullptr;
  Prompt prompt;  ///< with documents, the text is their tokens in a row, with one BOS at the beginning
  std::vector<std::vector<Token>> documents;  ///< each as it is read on its own, with BOS; empty: none
  Protocol protocol = Protocol::aware;
  int cut_tokens = 0;                    ///< number removed from the prompt
  double read_ms = 0;                    ///< time of reading for all methods of the group
  std::vector<FirstToken> first_tokens;  ///< for each method of the group

  /// Number of tokens of the whole prompt.
  int tokens() const { return static_cast<int>(prompt.text.size() + prompt.question.size()); }
};

/// Tokenizes a sample. Cuts the middle of a prompt of more than `max_prompt` tokens (0: any number), as LongBench does,
/// but nothing of the question. Cuts the middles of the longest documents to a common length; each keeps at
/// least one token. Text of the chat template and the sample before the documents is a document of its own, which is
/// never cut. Throws what Model::tokenize() throws.
TokenizedSample tokenized(const Model& model, const Sample& sample, Protocol protocol, int max_prompt);

/// A hash of all tokens, and of the documents' ends.
std::string hash_of(const TokenizedSample& sample);

}  // namespace winnow::eval
