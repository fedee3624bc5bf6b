// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "attention/attention.h"
#include "cache/scratch.h"
#include "engine/prompt_attention.h"
#include "model/hparams.h"
#include "model/vocab.h"
#include "network/executor.h"
#include "policy/views.h"
#include "winnow/session.h"

namespace winnow::engine {

/// What a prefill runs on; everything belongs to the session.
struct PrefillContext {
  network::Executor& executor;
  attention::PrefillAttention& attention;
  const model::Hparams& hparams;
  const model::Vocab& vocab;
  MemoryAccount& account;
  const SessionOptions& options;
  const std::function<void(double)>& progress;
  PastLanes* past = nullptr;  ///< set: the prompt comes after that
};

/// Prompts that share their beginning, read layer by layer. In each layer the shared text passes in chunks, then every
/// question in turn over the text's keys and values (rows of the scratch are given back in between), then what its
/// methods read again, passage by passage in the same way, and each finished prompt is compressed at once. So a layer's
/// full cache is all that is ever held, for any number of questions and cache options.
class Prefill {
 public:
  Prefill(const PrefillContext& context, std::span<const Token> text, std::span<const std::vector<Token>> questions,
          std::span<const CacheOptions> caches);
  ~Prefill();
  std::vector<Prefilled> run();

 private:
  struct Replay;
  struct Branch;

  static std::vector<Branch> branches_of(const PrefillContext& context, int text,
                                         std::span<const std::vector<Token>> questions,
                                         std::span<const CacheOptions> caches);
  static int longest(const std::vector<Branch>& branches);
  /// Adds the tokens of the passages that are read again after one prompt.
  void add_passages(Branch& branch, std::span<const Token> question, std::vector<Token>& rows) const;
  int past_tokens() const;
  void run_layer(int layer);
  void run_rows(int layer, int first_row, int count, int first_position, const Watchers& watchers);
  std::unique_ptr<PromptAttention> attention_of(int layer, int first, const Watchers& watchers);
  void run_again(int layer, const Branch& branch, Replay& replay);
  void compress(int layer, Branch& branch);
  std::vector<float> logits_of(const Branch& branch);

  const PrefillContext& context_;
  std::vector<Token> text_;
  std::vector<Branch> branches_;
  cache::LayerScratch scratch_;
  Buffer hidden_;  ///< [text, then each question with its passages][n_embd] f32
  int rows_done_ = 0;
};

/// What a method wants to see of the attention of a prompt in a layer.
std::vector<attention::Observe> observed_by(const policy::Method& method, const policy::Terms& terms);

/// Bytes of the hidden states of so many rows.
std::size_t hidden_bytes(const model::Hparams& hparams, std::size_t rows);

/// The type of the scratch: one that loses nothing which a lane would keep.
ElementType scratch_type(Precision precision, std::span<const CacheOptions> caches);

/// Bytes of one token's keys and values in a scratch, in the layer where they take the most.
std::size_t scratch_bytes(const model::Hparams& hparams, ElementType type);

/// What factors of attention are rounded to.
attention::ComputeType compute_type_of(Precision precision);

/// Bytes that such a prefill holds at its peak: hidden states, one layer's keys and values, what is observed of its
/// attention, what one cache's plan takes, the lanes.
std::size_t prefill_bytes(const model::Hparams& hparams, const model::Vocab& vocab, const SessionOptions& options,
                          int shared, int rows, std::span<const int> prompts, std::span<const CacheOptions> caches);

}  // namespace winnow::engine
