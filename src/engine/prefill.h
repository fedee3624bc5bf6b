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
#include "engine/known_text.h"
#include "engine/past.h"
#include "engine/prefill_branch.h"
#include "engine/prefill_plan.h"
#include "engine/prompt_attention.h"
#include "network/executor.h"
#include "winnow/session.h"

namespace winnow::engine {

/// [prompt][cache]; null: each layer is compressed by its own scores.
using Rankings = std::vector<std::vector<std::shared_ptr<Ranking>>>;

/// Inputs of a reading, which they outlive.
struct ReadingInput {
  std::span<const Token> text;                         ///< common beginning of all prompts
  std::span<const std::vector<Token>> questions = {};  ///< one for each prompt; empty: one prompt, the text
  const Past* past = nullptr;                          ///< text before the prompts; may be null
  KnownText* known = nullptr;                          ///< store of the text's keys and values; may be null.
                                                       ///< REQUIRES: no past
  RowRange outputs = {};                               ///< tokens of the text whose output is read, besides the last
                                                       ///< of each prompt. REQUIRES for any: no `known`
  policy::Observer* observer = nullptr;                ///< additional observer; may be null. REQUIRES: one prompt
  std::function<void(double)> progress = {};           ///< receives the fraction done; empty: the session's does
};

/// A pass over prompts that share their beginning, layer by layer, as a plan says. In each layer the shared text passes
/// in chunks. Then each question in turn passes over the text's keys and values, and after it the passages that its
/// methods replay; their rows of the scratch are given back in between. Each complete prompt is compressed at once. So
/// one layer's full cache is held at a time, for any number of questions and cache options. Keys and values that later
/// layers read, too, stay in a scratch of their own until the last of these layers has passed. Those of questions and
/// passages, which share rows of the scratch, are copied aside.
class Prefill {
 public:
  /// `session` and `plan` outlive it. Throws MemoryError.
  Prefill(Session::Impl& session, const PrefillPlan& plan, network::Pass pass, const ReadingInput& input,
          const Rankings& rankings);
  Prefill(const Prefill&) = delete;
  Prefill& operator=(const Prefill&) = delete;
  /// Bytes of the scratches.
  static std::size_t scratch_bytes(const model::Hparams& hparams, const PrefillPlan& plan);

  /// Runs the next chunk through the current layer, or multiplies some of its experts. Returns false when all layers
  /// are done.
  bool advance();
  /// Fraction of all rows in all layers that have passed.
  double done() const;
  /// A prompt's caches so far: the layers that have been compressed.
  std::span<const Cache> caches(std::size_t prompt) const { return branches_[prompt].caches(); }
  /// A prompt's caches. May be called once. REQUIRES: advance() has returned false.
  std::vector<Cache> take_caches(std::size_t prompt) { return branches_[prompt].take_caches(); }
  std::vector<float> logits(std::size_t prompt) { return hidden_.logits(plan_.branches()[prompt].last_row); }
  /// Logits of some of the input's `outputs`, [count][n_vocab].
  void text_logits(RowRange tokens, std::span<float> out) { hidden_.logits(output(tokens), out); }
  /// Hidden states of some of them after the final norm, [count][n_embd].
  void text_states(RowRange tokens, std::span<float> out) { hidden_.last_states(output(tokens), out); }

 private:
  using Chunk = PrefillPlan::Chunk;

  /// Gives the branches their prompts. Returns the tokens of all rows.
  std::vector<Token> begin_branches(const ReadingInput& input, const Rankings& rankings);
  void begin_layer();
  bool end_layer();
  void run(const Chunk& chunk);
  /// Cuts the scratch back to the rows that precede a chunk, or adds known ones.
  void begin_rows(const Chunk& chunk);
  /// Rows whose output nobody reads end at the attention of the last layer.
  network::Until until(const Chunk& chunk) const;
  /// The same tokens. REQUIRES: they are among the input's `outputs`.
  RowRange output(RowRange tokens) const;
  ChunkObservers observers_of(const Chunk& chunk) const;
  PromptAttention attention_of(const Chunk& chunk);
  /// Keys and values of `kv_layer`.
  cache::LayerScratch& scratch_of(int kv_layer);
  const model::Hparams& hparams() const;
  int kv_layer() const { return hparams().kv_layer(layer_); }
  /// Restore and save rows that a later chunk overwrites but later layers read.
  void put_rows(const Chunk& chunk, std::size_t number);
  void copy_rows(const Chunk& chunk, std::size_t number);
  void compress(PrefillBranch& branch);

  Session::Impl& session_;
  const PrefillPlan& plan_;
  network::Pass pass_;
  const Past* past_;
  KnownText* known_;
  policy::Observer* observer_;
  RowRange outputs_;
  std::vector<PrefillBranch> branches_;
  cache::LayerScratch scratch_;
  std::map<int, cache::LayerScratch> shared_;            ///< of layers whose keys other layers share
  std::map<std::pair<int, std::size_t>, Buffer> aside_;  ///< rows of such a layer and a chunk
  std::optional<cache::PastRows> past_rows_;             ///< of the current layer
  HiddenStates hidden_;                                  ///< rows of the text, then of each question with its passages
  int layer_ = 0;                                        ///< the current layer
  std::size_t next_ = 0;                                 ///< next chunk of the current layer
  int intact_ = 0;  ///< leading rows of the current layer's scratch that are the prompt's
  int rows_done_ = 0;
};

}  // namespace winnow::engine
