// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/memory.h"
#include "base/rope.h"
#include "base/worker.h"
#include "cache/lane_piece.h"
#include "cache/past_rows.h"
#include "cache/scratch.h"
#include "winnow/policy/attention.h"

namespace winnow::attention {

/// What the factors of q·k and of probabilities with values are rounded to; sums and softmax are in f32.
enum class ComputeType : std::uint8_t { f32, bf16 };

/// Whether this machine has a kernel for them. It has one for f32.
bool supports(ComputeType compute_type);

/// What each query of a chunk sees of a layer's scratch.
struct VisibleRange {
  std::span<const std::int32_t> leading;  ///< [count] rows before leading[i]; ascending
  std::span<const std::int32_t> own =
      {};  ///< [count] one row more, which is not among them; negative: none. Empty: none for all
  std::span<const std::int32_t> from =
      {};  ///< [count] of the leading rows those from this one on; ascending. Empty: all
};

/// Attention of a chunk of queries over a layer's scratch: of a prompt, where query i sees rows [0, first + i] (the
/// rows of the chunk itself included) or the last of them in the layer's window, or of any tokens that see leading
/// rows. Chunks may be of different layers. Online softmax in f32, tile by tile; no
/// [queries, keys] matrix is ever stored, except the probability tiles of observed rows of one query block. Used as:
/// begin() by one thread, run() by the team, a barrier, reduce() by the team.
class PrefillAttention {
 public:
  /// REQUIRES: supports(compute_type).
  PrefillAttention(MemoryAccount& account, int max_threads, ComputeType compute_type = ComputeType::f32);
  ~PrefillAttention();

  /// q and out: [count][H_q][d] f32. `observers` get the rows that they ask for; results are complete when the last
  /// chunk's reduce() is done. They record what these rows give to `recorded` alone; the probabilities are those of the
  /// whole rows. `row_scales` [count] are for observers that ask for a RowScale. All queries see `past`, too, whose
  /// last rows stand just before the prompt where the layer has a window; null: nothing comes before. REQUIRES:
  /// observers have room for all keys of the prompt that are recorded and seen, and a power only with all keys and
  /// without a window. Throws MemoryError, and is then to be called again before run(). run() and reduce() do not
  /// throw.
  void begin(const Shape& shape, const cache::LayerScratch& scratch, const float* q, float* out, int first, int count,
             std::span<Observation* const> observers, KeyRange recorded = {}, const float* row_scales = nullptr,
             const cache::PastRows* past = nullptr);
  /// The same for queries that see what `visible range` says; nobody looks on. A query that sees nothing gives zeros.
  void begin(const Shape& shape, const cache::LayerScratch& scratch, const float* q, float* out,
             const VisibleRange& visible);
  /// From the next run() on the logarithm of each query's sum of exp(logit), that of its sink included, [count][H_q],
  /// goes to `sums`; null: nowhere.
  void record_logsums(float* sums);
  void run(Worker worker);
  /// Adds what the blocks saw to the observations, in an order that does not depend on the number of threads.
  void reduce(Worker worker);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Rows [first, first + count) of a prompt.
struct Chunk {
  int first = 0;
  int count = 0;
  int past = 0;  ///< rows of a KV head that come before the prompt, at most
  KeyRange recorded = {};
};

/// An observation of a prompt of so many tokens.
struct ObservedPrompt {
  Observe what;
  int tokens = 0;
};

/// Bytes of the work space in which a team gathers what it observes of a chunk: probabilities of a block for each
/// thread, statistics of each item. The prompts that are observed have the chunk in common.
std::size_t observing_bytes(const Shape& shape, ComputeType compute_type, int threads, const Chunk& chunk,
                            std::span<const ObservedPrompt> observed);

/// What one query row of a decode step reads of one KV head.
struct DecodeRead {
  int row = 0;  ///< which query
  int kv_head = 0;
  cache::LanePiece piece;
  /// Where the attention probabilities of this piece's entries go, [G][stride] f32, for methods that score while
  /// decoding; may be null. Complete after merge().
  float* probabilities = nullptr;
  int probabilities_stride = 0;
};

/// Attention of single queries over ragged lanes: any number of rows (sequences), each with pieces of any length and
/// encoding. Long pieces are split so that the team shares the bytes evenly; the parts are folded as PartialState in a
/// fixed order. Used as: begin() by one thread, run() by the team, a barrier, merge() by the team. A row that reads
/// nothing gives zeros. Probabilities add up to 1 with that of the shape's sink.
class DecodeAttention {
 public:
  DecodeAttention(MemoryAccount& account, int max_threads);
  ~DecodeAttention();

  /// One layer's step. q and out: [rows][H_q][d] f32, q rotated to its own position. `reads` sorted by (row, kv_head).
  /// The tables of a `rope` are made once: it must outlive this. Throws MemoryError; run() and merge() do not throw.
  void begin(const Shape& shape, const Rope& rope, std::span<const DecodeRead> reads, const float* q, float* out,
             int rows);
  void run(Worker worker);
  void merge(Worker worker);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// A lane as a step reads it.
struct LaneSize {
  int block = 0;   ///< entries that lie together
  int others = 0;  ///< entries in pages, and merged entries
};

/// Bytes of the work space of a step whose rows each read such a lane in every KV head, at most; `rope` is that of keys
/// that are rotated when they are read, up to position `end`, or null.
std::size_t decode_bytes(const Shape& shape, int rows, const LaneSize& lane, const Rope* rope, int end);

/// Softmax attention over part of the keys, so that parts can be folded: o is the weighted sum of values (not divided),
/// m the largest logit, d the sum of exp(logit - m). Nothing seen: m = -inf, d = 0, o = 0. merge is associative and
/// commutative up to rounding.
struct PartialState {
  std::span<float> o;  ///< [head_dim]
  float m;
  float d;
};

/// Folds `other` into `into`.
void merge(PartialState& into, const PartialState& other);

}  // namespace winnow::attention
