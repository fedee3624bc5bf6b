// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// winnow's kernels for a GPU, behind plain structs and a table of functions, so that no class crosses the border of
/// the library that has them. Every pointer is an address on the device. A call queues its work in a stream and
/// returns; the structs may go at once. Logits are in base 2: q·k times scale times log2(e).
namespace winnow::device {

/// How an element of a row is stored; the numbers are those of winnow::ElementType. Rows of q8_0 and q4_0 have their
/// scales in a plane of their own: f16, one for 32 elements. Element e of eight that q4_0 has in one word is nibble
/// e / 2 if it is even, and nibble 4 + e / 2 if it is odd; a nibble n stands for n - 8.
enum class Element : std::int32_t { f32 = 0, f16 = 1, bf16 = 2, q8_0 = 3, q4_0 = 4 };

/// Cosines and sines of the angles that add up to those of a position: of a multiple of kFine, and of the rest. A row
/// of a table is [2][width]: cosines of all pairs, then sines. Pair i of a row is (i, i + pairs), or (2i, 2i + 1).
/// REQUIRES: pairs is a multiple of 8, width of 4.
struct Angles {
  static constexpr std::int32_t kFine = 64;

  const float* coarse;  ///< of positions 0, kFine, 2 kFine and so on
  const float* fine;    ///< of positions below kFine; null: nothing is turned
  std::int32_t pairs, width;
  std::int32_t halves;  ///< 1: (i, i + pairs); 0: (2i, 2i + 1)
};

/// Attention of a chunk of a prompt's queries over a layer's scratch, and over what is kept of the text before. Query i
/// stands at row first + i and sees the past and the rows up to its own, or the last `window` of all these. REQUIRES:
/// dim is a multiple of 8 up to 256; element f16 or bf16; all addresses but those of f32 are multiples of 16.
struct PrefillTask {
  const float* q;           ///< [count][heads][dim]
  float* out;               ///< [count][heads][dim]
  float* lse;               ///< [count][heads] logarithms of the sums of 2^logit, sinks included; null: not wanted
  void* packed;             ///< [heads][count][dim] of `element`: queries as observe() reads them; null: not wanted
  const void* keys;         ///< [kv_heads][capacity][dim] of `element`
  const void* values;       ///< the same
  const float* sinks;       ///< [heads] logits in base e; null: there are none
  const void* past_keys;    ///< [rows of all KV heads][dim] of `element`
  const void* past_values;  ///< the same
  const std::int32_t* past_first;  ///< [kv_heads + 1] first such row of each head; null: nothing comes before
  Element element;
  std::int32_t first, count, heads, kv_heads, dim, capacity;
  std::int32_t window;  ///< 0: all rows up to its own
  float scale;
  float cap;  ///< soft cap of logits in base e; 0: there is none
};

enum class Reduction : std::int32_t { sum, max };

/// Reduces the probabilities of observed queries of a chunk for each key, after prefill() with `lse` and `packed`.
struct ObserveTask {
  const void* packed;        ///< [heads][count][dim], by prefill()
  const float* lse;          ///< [count][heads], by prefill()
  const void* keys;          ///< [kv_heads][capacity][dim] of `element`
  const std::int32_t* rows;  ///< [observed] queries of the chunk, ascending; null: the first `observed` ones
  const float* weights;      ///< [observed] factors of their probabilities, above 0; null: 1
  float* columns;            ///< [heads][stride]: the sum is added to, the maximum raised; column j is key begin + j
  Element element;
  Reduction reduction;
  std::int32_t observed, first, count, heads, kv_heads, dim, capacity;
  std::int32_t begin, end, stride;  ///< keys that are recorded
  std::int32_t reach;               ///< keys up to a query's own that it is recorded at; 0: all
  float cap;                        ///< as prefill() had it
};

/// Some entries of a lane, read for one query of a step: rows that lie together, or others that share those rows.
struct DecodeItem {
  static constexpr std::int32_t kMost = 1024;  ///< entries of an item

  const void* keys;          ///< rows of the task's key element
  const void* values;        ///< rows of the task's value element
  const void* key_scales;    ///< [row][dim / 32] f16; null where the element has none
  const void* value_scales;  ///< likewise
  float* probabilities;      ///< [group][stride], first entry of this item; null: not wanted
  /// [count] position that each entry's key is turned to when it is read; null: 0 for all.
  const std::int32_t* positions;
  const std::int32_t* rows;  ///< [count] row of each entry, less `first_row`; null: entry i has row i
  const float* factors;      ///< [count] of the entries' keys; null: 1
  std::int32_t row, kv_head, count, stride;
  std::int32_t first_row;
  std::int32_t shift;  ///< positions that the query is turned by before it reads
};

/// Attention of single queries over ragged lanes: parts for each item, then their merge in the order of items. A query
/// without items gives zeros. REQUIRES: dim is a multiple of 8 up to 256; quantized rows are padded to a multiple
/// of 32.
struct DecodeTask {
  const float* q;                  ///< [rows][heads][dim]
  float* out;                      ///< [rows][heads][dim]
  float* lse;                      ///< [rows][heads] as of PrefillTask; null: no item wants probabilities
  const DecodeItem* items;         ///< [item_count], by (row, kv_head)
  const std::int32_t* first_item;  ///< [rows * kv_heads + 1] first item of each row and KV head
  float* partial;                  ///< work space, [item_count][group][dim + 2] at a multiple of 16
  const float* sinks;              ///< [heads] logits in base e; null: there are none
  Angles angles;
  std::int32_t listed;  ///< 1: items may have positions, rows and factors; 0: none has
  Element key_element, value_element;
  std::int32_t item_count, rows, heads, kv_heads, dim;
  float scale;
  float cap;
};

/// Rows that come from one place and go to one place: keys or values of a head. Entry i of the run is read from row
/// rows[i] - first_row times from_step, and written to row to_rows[i], or i.
struct StoredRun {
  const void* from;               ///< rows of the task's source element
  const void* from_scales;        ///< [row][dim / 32] f16; null where the source has none
  void* to;                       ///< rows of the task's element
  void* to_scales;                ///< likewise
  const std::int32_t* rows;       ///< [count]; null: entry i has row first_row + i
  const std::int32_t* to_rows;    ///< [count]; null: entry i goes to row i
  const std::int32_t* positions;  ///< [count] that each row is turned by, times `sign`, less `shift`; null: 0 for all
  const float* factors;           ///< [count] of the rows; null: 1
  std::int32_t count, first_row, from_step;
  std::int32_t sign;  ///< 1 or -1
  std::int32_t shift;
};

/// Encodes rows: keys and values of a step or chunk into scratch or lanes, rows of a scratch into lanes, entries of
/// lanes into the past of a prompt or into other places of their lanes. Quantized rows that stay as they are keep
/// their bits. REQUIRES: dim is a multiple of 8; no row is read that another one is written to.
struct StoreTask {
  const StoredRun* runs;  ///< [run_count]
  Angles angles;
  std::int32_t* bad;  ///< becomes 1 where an element is not finite; null: nobody looks
  Element source, element;
  std::int32_t run_count, most;  ///< entries of the longest run
  std::int32_t dim;
};

/// The calls that a library of kernels exports. A call gives null, or a sentence that says why nothing was queued.
struct Kernels {
  std::int32_t version;
  const char* (*prefill)(const PrefillTask&, void* stream);
  const char* (*observe)(const ObserveTask&, void* stream);
  const char* (*decode)(const DecodeTask&, void* stream);
  const char* (*store)(const StoreTask&, void* stream);
};

}  // namespace winnow::device

extern "C" const winnow::device::Kernels* winnow_kernels();
