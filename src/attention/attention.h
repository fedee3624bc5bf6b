// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/rope.h"
#include "base/worker.h"
#include "cache/lane_run.h"
#include "cache/past_rows.h"
#include "cache/scratch.h"
#include "device/on_device.h"
#include "winnow/policy/attention.h"

namespace winnow::attention {

/// Type to which the factors of q·k and of probabilities times values are rounded; sums and softmax are in f32.
enum class ComputeType : std::uint8_t { f32, bf16 };

/// True if this machine has a kernel for the type. Every machine has one for f32.
bool supports(ComputeType compute_type);

/// Rows of a layer's scratch that each query of a chunk sees.
struct VisibleRange {
  std::span<const std::int32_t> leading;    ///< [count] query i sees rows before leading[i]; ascending
  std::span<const std::int32_t> own = {};   ///< [count] also sees this row; negative: none. Empty: none for all
  std::span<const std::int32_t> from = {};  ///< [count] sees leading rows from this one on; ascending. Empty: all
};

/// Rows [first, first + count) of a prompt.
struct Chunk {
  int first = 0;
  int count = 0;
  int past = 0;  ///< maximum number of a KV head's rows before the prompt
  KeyRange recorded = {};
};

/// A request for column statistics of a prompt of `tokens` tokens.
struct PromptColumns {
  ColumnRequest request;
  int tokens = 0;
};

/// Queries of rows [first, first + count) of a prompt in a layer, and what their attention is for.
struct PromptQueries {
  Shape shape;
  const float* q = nullptr;  ///< [count][H_q][d] f32
  float* out = nullptr;      ///< likewise
  int first = 0;
  int count = 0;
  /// Record the attention of their rows to the keys in `recorded`. REQUIRES: room for all recorded keys that are seen;
  /// powers only with all keys recorded and no window.
  std::span<ColumnStatistics* const> columns = {};
  KeyRange recorded = {};
  const float* row_scales = nullptr;      ///< [count] for requests with a RowScale
  const cache::PastRows* past = nullptr;  ///< kept rows before the prompt; null: none
};

/// Keys and values [count][H_kv][d] f32 of a chunk's rows. Null if another layer has stored them.
struct NewRows {
  const float* keys = nullptr;
  const float* values = nullptr;
};

/// Attention of a chunk of queries over a layer's scratch. In a prompt, query i sees rows [0, first + i], the chunk's
/// own included, or the last of them in a window; otherwise each query sees leading rows. Chunks may be of different
/// layers. Softmax in f32; no [queries, keys] matrix is stored. Usage: begin() by one thread, run() by the team, a
/// barrier, reduce() by the team.
class PrefillAttention {
 public:
  virtual ~PrefillAttention() = default;

  /// Column statistics are complete after the last chunk's reduce(). Probabilities are normalised over all keys of a
  /// row, recorded or not. All queries also see the past; in layers with windows, its last rows come just before the
  /// prompt. Throws MemoryError, after which begin() must succeed before run(). run() and reduce() do not throw.
  virtual void begin(const PromptQueries& queries, const cache::LayerScratch& scratch) = 0;
  /// The same for queries that see the rows of `visible`, without column statistics. A query that sees no row gives
  /// zeros.
  virtual void begin(const Shape& shape, const cache::LayerScratch& scratch, const float* q, float* out,
                     const VisibleRange& visible) = 0;
  /// From the next run() on, writes the logarithm of each query's sum of exp(logit), its sink included, to `sums`
  /// [count][H_q]; null: stops writing.
  virtual void record_logsums(float* sums) = 0;
  virtual void run(Worker worker) = 0;
  /// Adds the blocks' statistics to the columns, in an order that does not depend on the number of threads.
  virtual void reduce(Worker worker) = 0;
  /// Does all of this, in place of the functions above, for queries and new rows in a device's memory. The scratch gets
  /// the new rows, from `queries.first` on, when they are read. Throws MemoryError.
  virtual winnow::device::OnDevice attend_on_device(const PromptQueries& /*queries*/, const NewRows& /*rows*/,
                                                    cache::LayerScratch& /*scratch*/) {
    return winnow::device::OnDevice::not_done;
  }

  /// Bytes of the work space in which a team collects column statistics of a chunk. All prompts share the chunk.
  virtual std::size_t recording_bytes(const Shape& shape, const Chunk& chunk,
                                      std::span<const PromptColumns> observed) const = 0;
};

/// A run of one KV head's lane, read by one query row of a decode step.
struct DecodeRead {
  int row = 0;  ///< index of the query
  int kv_head = 0;
  cache::LaneRun run;
  /// Destination of the entries' attention probabilities, [G][stride] f32, for methods that score while decoding; may
  /// be null. Complete after merge().
  float* probabilities = nullptr;
  int probabilities_stride = 0;
};

/// Sizes of a lane that a step reads.
struct LaneSize {
  int block = 0;   ///< contiguous entries
  int others = 0;  ///< entries of the tail, and merged entries
};

/// A row of a step that has entered a lane. Its key and value follow.
struct EnteredRow {
  int row = 0;
  int kv_head = 0;
  const cache::LaneStorage* storage = nullptr;
  int slot = 0;
};

/// A layer of a step whose tensors are in a device's memory.
struct StepTensors {
  const float* q = nullptr;  ///< [rows][H_q][d] f32
  NewRows entered = {};      ///< keys and values of the rows
  float* out = nullptr;      ///< [rows][H_q][d] f32
};

/// Attention of all layers of a step on a device. All are planned before the first one is computed, so that no layer
/// waits for the host.
class DeviceStep {
 public:
  virtual ~DeviceStep() = default;

  /// Begins a step of `rows` rows.
  virtual void begin(int rows) = 0;
  /// Plans the next layer, whose arguments are those of DecodeAttention::begin() and the rows that enter lanes in it.
  virtual void plan(const Shape& shape, const Rope& rope, std::span<const DecodeRead> reads,
                    std::span<const EnteredRow> entered, const StepTensors& tensors) = 0;
  /// Copies to the device what has been planned.
  virtual void upload() = 0;
  /// Queues the attention of a layer. Returns false if the host has to compute it.
  virtual bool attend(int layer) = 0;
  /// Waits for the device. Calls `take` for each layer that it has computed since the last call, with the rows that
  /// have entered lanes, in the host's memory. The caller stores them in the lanes. Returns the first of these layers
  /// with a number that is not finite.
  virtual std::optional<int> finish(const std::function<void(int layer, const NewRows& rows)>& take) = 0;
};

/// Attention of single queries over ragged lanes: any number of rows (sequences), each with runs of any length and
/// encoding. Long runs are split, and the parts are merged as PartialState in a fixed order. Usage: begin() by one
/// thread, run() by the team, a barrier, merge() by the team. The output of a row that reads nothing is 0.
/// Probabilities, including the sink's if the shape has one, add up to 1.
class DecodeAttention {
 public:
  virtual ~DecodeAttention() = default;

  /// Begins a layer's step. q and out: [rows][H_q][d] f32, q rotated to its own position. `reads` are sorted by (row,
  /// kv_head). `rope` must outlive this object, which keeps its tables. Throws MemoryError; run() and merge() do not
  /// throw.
  virtual void begin(const Shape& shape, const Rope& rope, std::span<const DecodeRead> reads, const float* q,
                     float* out, int rows) = 0;
  virtual void run(Worker worker) = 0;
  virtual void merge(Worker worker) = 0;

  /// For steps whose tensors are in a device's memory; null: they are computed over the host's.
  virtual DeviceStep* on_device() const { return nullptr; }
  /// Frees copies of lanes, which later steps make again.
  virtual void free_copies() {}

  /// Worst-case bytes of the work space of a step whose rows each read such a lane in every KV head. `rope`: for keys
  /// that are rotated when they are read, to positions below `end`; may be null.
  virtual std::size_t bytes(const Shape& shape, int rows, const LaneSize& lane, const Rope* rope, int end) const = 0;
};

/// Softmax attention over some of the keys, mergeable with others: o is the weighted sum of values (not divided), m the
/// largest logit, d the sum of exp(logit - m). Without keys, m = -inf, d = 0, o = 0. merge is associative and
/// commutative up to rounding.
struct PartialState {
  std::span<float> o;  ///< [head_dim]
  float m;
  float d;
};

/// Merges `other` into `into`.
void merge(PartialState& into, const PartialState& other);

}  // namespace winnow::attention
