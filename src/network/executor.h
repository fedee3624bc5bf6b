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
#include "network/states.h"

namespace winnow::network {

/// Which sequences the rows of a step belong to.
enum class Rows : std::uint8_t {
  of_one_sequence,  ///< the number of rows depends only on this sequence: the fastest products are used
  of_several,       ///< on the CPU, each row is bit for bit what it would be alone, whatever the number of rows
};

/// How far rows go in a layer.
enum class Until : std::uint8_t {
  attention,  ///< through attention, which sees them; their hidden states do not change
  output,
};

/// A run of a layer beyond its rows.
struct LayerRun {
  std::span<const std::int32_t> tokens = {};  ///< tokens of the rows, for networks with per-layer embeddings
  ExpertRows* later = nullptr;  ///< positioned at the first of the rows: experts' products are left to add_experts()
  Until until = Until::output;  ///< REQUIRES: output with `later`
};

/// Runs everything between attentions: embedding, norms, projections, RoPE, feed-forward, output. If the weights are on
/// a device, it computes there, except for output_lengths(), and for attention that the AttentionOp leaves to the host.
/// Owns the thread pool, which also runs attention. Not thread-safe: one executor per thread that drives a model; the
/// weights are shared.
class Executor {
 public:
  /// Throws MemoryError. `threads` >= 1. REQUIRES: no packing with a device.
  Executor(const model::Weights& weights, int threads, MemoryAccount& account, Packing packing = Packing::none);
  ~Executor();

  int threads() const;
  /// Rows that have passed through layers since the beginning, summed over layers.
  std::int64_t layer_rows() const;

  /// Begins a pass, in which rows go through one layer after the other. Each layer's weights may be packed for it, in
  /// up to `spare` bytes, which are freed when the last pass ends. Passes may take turns, with steps in between; the
  /// first open one decides for all whether there is room. Passes must not outlive the executor.
  Pass begin_pass(int rows, std::size_t spare);
  /// Bytes of packed weights for a pass of `rows` rows.
  std::size_t packed_bytes(int rows) const;

  /// Allocates the work space for chunks of these sizes in any layer of a pass of `rows` rows.
  void reserve(const Pass& pass, std::span<const int> chunks, int rows);

  /// Hidden states for this executor, with any values. Throws MemoryError that names `purpose`.
  States states(int rows, const char* purpose);
  /// Row i becomes the embedding of tokens[i], times the architecture's scale.
  void embed(std::span<const std::int32_t> tokens, States& hidden);

  /// True if the experts of a layer run after all rows of the pass, packed one at a time.
  bool packs_experts(const Pass& pass, int layer) const;
  /// Bytes per row of a pass of `rows` rows: its hidden state, and data kept for experts.
  std::size_t row_bytes(int rows) const;

  /// Runs one layer over rows of a pass in place: from `first` on, one for each position, to which RoPE rotates.
  /// Throws ModelError, here and below, if values are not finite, naming the responsible tensor or the layer.
  void run_layer(const Pass& pass, int layer, States& hidden, int first, std::span<const std::int32_t> positions,
                 AttentionOp& attention, const LayerRun& run = {});
  /// Adds the outputs of some of a layer's experts to `hidden`, the states of all rows, after all rows of the pass went
  /// through run_layer(). Does about as much work as 512 rows; returns false if nothing is left. REQUIRES:
  /// packs_experts(pass, layer).
  bool add_experts(const Pass& pass, int layer, ExpertRows& rows, States& hidden);

  /// Keys, rotated to `positions`, and values of the first rows in a layer, [n][H_kv][d] each.
  void keys_and_values(const Pass& pass, int layer, const States& hidden, std::span<const std::int32_t> positions,
                       float* keys, float* values);

  /// Writes a KV head's values of tokens [first, first + count), [count][d].
  using ValueSource = std::function<void(int kv_head, int first, int count, float* values)>;
  /// Norms of W_o^(h) v: [H_q][tokens] each.
  struct OutputLengths {
    std::span<float> absolute;   ///< L1 norms
    std::span<float> euclidean;  ///< L2 norms
  };
  /// Computes the norms of W_o^(h) v for all query heads h of a layer and all values v of their KV heads. Takes about
  /// as long as the layer's output projection for as many rows. Throws MemoryError and Interrupted.
  void output_lengths(int layer, int tokens, const ValueSource& values, const OutputLengths& out);
  /// Peak bytes of output_lengths(), maximum over layers.
  static std::size_t output_lengths_bytes(const model::Hparams& hparams);

  /// Runs all layers over some rows in one graph (decoding), then the final norm and output matrix for the last rows,
  /// as many as `logits`, [rows][n_vocab], has room for (possibly none).
  void step(Rows whose, std::span<const std::int32_t> tokens, std::span<const std::int32_t> positions,
            AttentionOp& attention, std::span<float> logits);

  /// Logits of rows [first, first + n) of the last layer's output: [n][n_vocab].
  void logits(const States& hidden, int first, int n, float* logits);
  /// Final norm of such rows: [n][n_embd].
  void last_states(const States& hidden, int first, int n, float* states);

  /// Sets a callback that the calling thread polls after every node while a graph runs. If it returns true, Interrupted
  /// is thrown, and hidden states and stored keys and values are left incomplete.
  void set_stop(std::function<bool()> stop);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace winnow::network
