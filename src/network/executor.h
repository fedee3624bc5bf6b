// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/memory.h"
#include "model/weights.h"
#include "network/attention_op.h"
#include "network/expert_rows.h"
#include "network/packs.h"

namespace winnow::network {

/// Whose the rows of a step are.
enum class Rows : std::uint8_t {
  of_one_sequence,  ///< how many there are depends on it alone: they take the fastest products
  of_several,       ///< each is bit for bit what it would be alone, however many are beside it
};

/// Runs what lies between attentions: embedding, norms, projections, RoPE, feed-forward, output. Owns the thread pool
/// that also runs attention. Not thread-safe: one executor for each thread that drives a model; the weights are shared.
class Executor {
 public:
  /// Throws MemoryError. `threads` >= 1.
  Executor(const model::Weights& weights, int threads, MemoryAccount& account, Packing packing = Packing::none);
  ~Executor();

  int threads() const;
  /// Rows that have passed through a layer, over all layers and since the beginning.
  std::int64_t layer_rows() const;

  /// Begins a pass, in which rows go through one layer after the other. Each layer's weights may be packed for it,
  /// which takes up to `spare` bytes until the last pass has ended. Passes may take turns, with steps in between: while
  /// one is open, it has settled for all whether there is room. None outlives the executor.
  Pass begin_pass(int rows, std::size_t spare);
  /// Bytes that a pass of `rows` rows would take for packed weights.
  std::size_t packed_bytes(int rows) const;

  /// Allocates the work space that chunks of so many rows need in any layer of a pass of `rows` rows.
  void reserve(const Pass& pass, std::span<const int> chunks, int rows);

  /// hidden[i] = embedding of tokens[i], [n][n_embd] f32 (with the architecture's scale).
  void embed(std::span<const std::int32_t> tokens, float* hidden);

  /// Whether the experts of a layer come after all rows of a pass, packed one at a time.
  bool packs_experts(const Pass& pass, int layer) const;
  /// Bytes that each of so many rows of a pass takes: its hidden state, and what is kept for experts.
  std::size_t row_bytes(int rows) const;

  /// One layer over some rows of a pass: hidden [n][n_embd] in place, RoPE at `positions`, attention by `attention`.
  /// `hidden` is 32-byte aligned, here and in logits(): ggml aborts on less. Throws ModelError, here and below, when
  /// values are not finite: it names the tensor to blame, or the layer. `tokens` are the rows': networks whose layers
  /// embed tokens, too, read them. With `later`, which has the place of the first of the rows, all but the products of
  /// experts: those are left to add_experts().
  void run_layer(const Pass& pass, int layer, float* hidden, std::span<const std::int32_t> positions,
                 AttentionOp& attention, std::span<const std::int32_t> tokens = {}, ExpertRows* later = nullptr);
  /// When all rows of a pass have left what they want of a layer's experts: adds what some of the experts give to
  /// `hidden`, the states of all rows. About as much work as 512 rows make; returns false when nothing is left.
  /// REQUIRES: packs_experts(pass, layer).
  bool add_experts(const Pass& pass, int layer, ExpertRows& rows, float* hidden);

  /// The keys, rotated to `positions`, and values that a layer makes of some rows, [n][H_kv][d] each; `hidden` stays as
  /// it is.
  void keys_and_values(const Pass& pass, int layer, const float* hidden, std::span<const std::int32_t> positions,
                       float* keys, float* values);

  /// Gives a KV head's values of tokens [first, first + count), [count][d].
  using ValueSource = std::function<void(int kv_head, int first, int count, float* values)>;
  /// Of what each query head's part of an output projection makes of values: [H_q][tokens] each.
  struct OutputLengths {
    std::span<float> absolute;   ///< sums of absolute values
    std::span<float> euclidean;  ///< roots of sums of squares
  };
  /// The lengths of W_o^(h) v for all query heads h of a layer and all values v of their KV heads. Takes about as long
  /// as the layer's output projection of so many rows. Throws MemoryError and Interrupted.
  void output_lengths(int layer, int tokens, const ValueSource& values, const OutputLengths& out);
  /// Bytes that this has in use at its peak, of any layer.
  static std::size_t output_lengths_bytes(const model::Hparams& hparams);

  /// All layers over some rows in one graph (decoding), then the final norm and output matrix for as many of the last
  /// rows as `logits`, [rows][n_vocab], has room for (none is possible).
  void step(Rows whose, std::span<const std::int32_t> tokens, std::span<const std::int32_t> positions,
            AttentionOp& attention, std::span<float> logits);

  /// Logits of rows [n][n_embd] of the last layer's output: [n][n_vocab].
  void logits(const float* hidden, int n, float* logits);
  /// The final norm of such rows: [n][n_embd].
  void last_states(const float* hidden, int n, float* states);

  /// Asked after every node from the calling thread while a graph runs; true stops it: Interrupted is thrown, and what
  /// the graph was changing (hidden states, what the attention stores) is left half-way.
  void set_stop(std::function<bool()> stop);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace winnow::network
