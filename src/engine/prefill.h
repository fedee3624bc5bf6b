// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "cache/scratch.h"
#include "engine/hidden_states.h"
#include "engine/past.h"
#include "engine/prefill_branch.h"
#include "engine/prefill_plan.h"
#include "engine/prompt_attention.h"
#include "network/executor.h"
#include "winnow/session.h"

namespace winnow::engine {

/// [prompt][cache]; null: each layer is compressed by what is seen of it.
using Rankings = std::vector<std::vector<std::shared_ptr<Ranking>>>;

/// Texts of a reading. All outlive it.
struct ReadingInput {
  std::span<const Token> text;                         ///< that all prompts begin with
  std::span<const std::vector<Token>> questions = {};  ///< of a prompt each; empty: one prompt, the text
  const Past* past = nullptr;                          ///< set: the prompts come after that
  policy::Observer* observer = nullptr;                ///< looks at the prompt, too. REQUIRES: one prompt
  std::function<void(double)> progress = {};           ///< hears of the share that is done; empty: the session's does
};

/// A pass over prompts that share their beginning, layer by layer, as a plan says. In each layer the shared text passes
/// in chunks, then every question in turn over the text's keys and values (rows of the scratch are given back in
/// between), then what its methods read again, passage by passage in the same way, and each finished prompt is
/// compressed at once. So a layer's full cache is all that is ever held, for any number of questions and cache options.
/// Keys and values that later layers read, too, stay until the last of them has passed, each in a scratch of its own;
/// of questions and passages, whose rows take turns in it, they are put aside.
class Prefill {
 public:
  /// `session` and `plan` outlive it. Throws MemoryError.
  Prefill(Session::Impl& session, const PrefillPlan& plan, network::Pass pass, const ReadingInput& input,
          const Rankings& rankings);
  Prefill(const Prefill&) = delete;
  Prefill& operator=(const Prefill&) = delete;
  /// Bytes of the keys and values of layers that are being read.
  static std::size_t scratch_bytes(const model::Hparams& hparams, const PrefillPlan& plan);

  /// The next chunk passes through the layer that is being read, or some of its experts multiply. Returns false when
  /// nothing is left in any layer.
  bool advance();
  /// The share of all chunks in all layers that have passed.
  double done() const;
  /// A prompt's caches as they are now, with the layers that have been compressed.
  std::span<const Cache> caches(std::size_t prompt) const { return branches_[prompt].caches(); }
  /// What has been read of a prompt, once. REQUIRES: advance() has returned false.
  std::vector<Cache> take_caches(std::size_t prompt) { return branches_[prompt].take_caches(); }
  std::vector<float> logits(std::size_t prompt) { return hidden_.logits(plan_.branches()[prompt].last_row); }
  /// Of some tokens of the shared text, [count][n_vocab].
  void text_logits(RowRange tokens, std::span<float> out) { hidden_.logits(tokens, out); }
  /// Last hidden states of some tokens of the shared text, after the final norm, [count][n_embd].
  void text_states(RowRange tokens, std::span<float> out) { hidden_.last_states(tokens, out); }

 private:
  using Chunk = PrefillPlan::Chunk;

  /// Tells the branches their prompts, and returns the tokens of all rows.
  std::vector<Token> begin_branches(const ReadingInput& input, const Rankings& rankings);
  void begin_layer();
  bool end_layer();
  void run(const Chunk& chunk);
  Watching watching(const Chunk& chunk) const;
  PromptAttention attention_of(const Chunk& chunk);
  /// Keys and values of a layer that the layer being read reads.
  cache::LayerScratch& scratch_of(int kv_layer);
  const model::Hparams& hparams() const;
  int kv_layer() const { return hparams().kv_layer(layer_); }
  /// Rows that a later chunk overwrites come and go where later layers read them.
  void put_rows(const Chunk& chunk, std::size_t number);
  void copy_rows(const Chunk& chunk, std::size_t number);
  void compress(PrefillBranch& branch);

  Session::Impl& session_;
  const PrefillPlan& plan_;
  network::Pass pass_;
  const Past* past_;
  policy::Observer* observer_;
  std::vector<PrefillBranch> branches_;
  cache::LayerScratch scratch_;
  std::map<int, cache::LayerScratch> shared_;            ///< of layers whose keys others read
  std::map<std::pair<int, std::size_t>, Buffer> aside_;  ///< of such a layer and a chunk
  std::optional<cache::PastRows> past_rows_;             ///< of the layer that is being read
  HiddenStates hidden_;                                  ///< of the text, then of each question with its passages
  int layer_ = 0;                                        ///< that is being read
  std::size_t next_ = 0;                                 ///< chunk
  int rows_done_ = 0;
};

}  // namespace winnow::engine
