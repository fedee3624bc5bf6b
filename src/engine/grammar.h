// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/vocab.h"
#include "winnow/generate.h"

struct llama_sampler;
struct llama_token_data;

namespace winnow::engine {

/// What may come next in an answer: a grammar of libllama (GBNF, from its rule `root`), and how far the answer has
/// come. A token without text, such as a control token, never may: libllama would take its name for a text.
class Grammar {
 public:
  /// `end`: whether the end of the sequence may come where the grammar allows it. `vocab` outlives the grammar. Throws
  /// UsageError for a text that is no grammar, or one that libllama cannot take.
  Grammar(const model::Vocab& vocab, const std::string& text, EndOfSequence end);
  Grammar(Grammar&&) noexcept;
  Grammar& operator=(Grammar&&) noexcept;
  ~Grammar();

  /// This and accept() throw UsageError when the answer can be read in too many ways.
  bool allows(Token token);
  /// Takes out the candidates that may not come next.
  void keep_allowed(std::vector<llama_token_data>& candidates);
  /// REQUIRES: allows(token).
  void accept(Token token);

 private:
  bool may_come(Token token) const;

  struct Free {
    void operator()(llama_sampler* grammar) const;
  };
  const model::Vocab* vocab_;
  EndOfSequence end_;
  unsigned char least_next_ = 0;  ///< byte that may come, after the first one of some characters
  std::unique_ptr<llama_sampler, Free> grammar_;
};

}  // namespace winnow::engine
