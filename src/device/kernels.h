// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// winnow's kernels for a GPU, behind plain structs and a table of functions, so that no class crosses the boundary of
/// their library. Every pointer is a device address. A call queues its work in a stream and returns; the structs need
/// not outlive it. Logits are in base 2: q·k times scale times log2(e).
namespace winnow::device {

/// Storage of a row's elements; numbered like winnow::ElementType. Rows of q8_0 and q4_0 have their scales in a plane
/// of their own: f16, one for 32 elements. In a word of q4_0, element e of eight is nibble e / 2 if e is even, and
/// nibble 4 + e / 2 if it is odd; a nibble n means n - 8.
enum class Element : std::int32_t { f32 = 0, f16 = 1, bf16 = 2, q8_0 = 3, q4_0 = 4 };

/// Cosines and sines for a position as the sum of two angles: that of a multiple of kFine, and the rest. A row of a
/// table is [2][width]: cosines of all pairs, then sines. Pair i of a row is (i, i + pairs), or (2i, 2i + 1). REQUIRES:
/// pairs is a multiple of 8, width of 4.
struct Angles {
  static constexpr std::int32_t kFine = 64;

  const float* coarse;  ///< for positions 0, kFine, 2 kFine and so on
  const float* fine;    ///< for positions below kFine; null: no rotation
  std::int32_t pairs, width;
  std::int32_t halves;  ///< 1: (i, i + pairs); 0: (2i, 2i + 1)
};

/// Sizes of heads that the kernels of attention take: multiples of kHeadUnit up to kMostHead.
inline constexpr std::int32_t kHeadUnit = 8;
inline constexpr std::int32_t kMostHead = 256;

/// Attention of a chunk of a prompt's queries over a layer's scratch and the kept entries of earlier text. Query i is
/// at row first + i, and sees the past and the rows up to its own, or the last `window` of all these. REQUIRES: dim is
/// a multiple of 8 up to 256; element f16 or bf16; all addresses except those of f32 are multiples of 16.
struct PrefillTask {
  const float* q;           ///< [count][heads][dim]
  float* out;               ///< [count][heads][dim]
  float* lse;               ///< [count][heads] logarithms of the sums of 2^logit, including sinks; null: not needed
  void* packed;             ///< [heads][count][dim] of `element`: packed queries for observe(); null: not needed
  const void* keys;         ///< [kv_heads][capacity][dim] of `element`
  const void* values;       ///< likewise
  const float* sinks;       ///< [heads] logits in base e; null: none
  const void* past_keys;    ///< [rows of all KV heads][dim] of `element`
  const void* past_values;  ///< likewise
  const std::int32_t* past_first;  ///< [kv_heads + 1] first such row of each head; null: no past
  Element element;
  std::int32_t first, count, heads, kv_heads, dim, capacity;
  std::int32_t window;  ///< 0: all rows up to its own
  float scale;
  float cap;  ///< soft cap of logits in base e; 0: none
};

enum class Reduction : std::int32_t { sum, max };

/// Reduces the probabilities of observed queries of a chunk for each key. Query i is recorded at keys up to first + i:
/// its own row, or for all queries one as far before it. REQUIRES: prefill() with `lse` and `packed`.
struct ObserveTask {
  const void* packed;        ///< [heads][count][dim], from prefill()
  const float* lse;          ///< [count][heads], from prefill()
  const void* keys;          ///< [kv_heads][capacity][dim] of `element`
  const std::int32_t* rows;  ///< [observed] queries of the chunk, ascending; null: the first `observed` ones
  const float* weights;      ///< [observed] positive factors of their probabilities; null: 1
  float* columns;            ///< [heads][stride] results: sums are added, maxima raised; column j is key begin + j
  Element element;
  Reduction reduction;
  std::int32_t observed, first, count, heads, kv_heads, dim, capacity;
  std::int32_t begin, end, stride;  ///< recorded keys
  std::int32_t reach;               ///< number of keys, ending with its last one, of a query; 0: all
  float cap;                        ///< as in prefill()
};

/// Some entries of a lane, read by one query of a step: contiguous rows, or entries that share such rows.
struct DecodeItem {
  static constexpr std::int32_t kMost = 1024;  ///< entries of an item

  const void* keys;          ///< rows of the task's key element
  const void* values;        ///< rows of the task's value element
  const void* key_scales;    ///< [row][dim / 32] f16; null for elements without scales
  const void* value_scales;  ///< likewise
  float* probabilities;      ///< [group][stride], from the first entry of this item; null: not needed
  /// [count] position to which each entry's key is rotated; null: 0 for all.
  const std::int32_t* positions;
  const std::int32_t* rows;  ///< [count] row of each entry, plus `first_row`; null: entry i is row i
  const float* factors;      ///< [count] factors of the entries' keys; null: 1
  std::int32_t row, kv_head, count, stride;
  std::int32_t first_row;
  std::int32_t shift;  ///< positions by which the query is rotated first
};

/// Attention of single queries over ragged lanes: a part for each item, then their merge in the order of items. A query
/// without items gives zeros. REQUIRES: dim is a multiple of 8 up to 256; quantized rows are padded to a multiple of
/// 32.
struct DecodeTask {
  const float* q;                  ///< [rows][heads][dim]
  float* out;                      ///< [rows][heads][dim]
  float* lse;                      ///< [rows][heads] as in PrefillTask; null: no item needs probabilities
  const DecodeItem* items;         ///< [item_count], ordered by (row, kv_head)
  const std::int32_t* first_item;  ///< [rows * kv_heads + 1] first item of each row and KV head
  float* partial;                  ///< work space, [item_count][group][dim + 2], 16-byte aligned
  const float* sinks;              ///< [heads] logits in base e; null: none
  Angles angles;
  std::int32_t listed;  ///< 1: items may have positions, rows and factors; 0: none does
  Element key_element, value_element;
  std::int32_t item_count, rows, heads, kv_heads, dim;
  float scale;
  float cap;
};

/// Rows copied from one place to another: keys or values of a head. Entry i is read from row (rows[i] - first_row) *
/// from_step, or (first_row + i) * from_step without `rows`, and written to row to_rows[i], or i.
struct StoredRun {
  const void* from;               ///< rows of the task's source element
  const void* from_scales;        ///< [row][dim / 32] f16; null if the source has no scales
  void* to;                       ///< rows of the task's element
  void* to_scales;                ///< likewise
  const std::int32_t* rows;       ///< [count]; null: entry i is row first_row + i
  const std::int32_t* to_rows;    ///< [count]; null: entry i goes to row i
  const std::int32_t* positions;  ///< [count] each row is rotated by position * sign - shift; null: 0 for all
  const float* factors;           ///< [count] factors of the rows; null: 1
  std::int32_t count, first_row;
  std::int32_t from_step = 1;
  std::int32_t sign = 1;  ///< or -1
  std::int32_t shift;
};

/// Encodes rows: keys and values of a step or chunk into scratch or lanes, rows of a scratch into lanes, entries of
/// lanes into the past of a prompt or other places of their lanes. Unchanged quantized rows keep their bits. REQUIRES:
/// dim is a multiple of 8; no row is both read and written for different entries.
struct StoreTask {
  const StoredRun* runs;  ///< [run_count]
  Angles angles;
  std::int32_t* bad;  ///< set to 1 if an element is not finite; null: not checked
  Element source, element;
  std::int32_t run_count, most;  ///< `most`: entries of the longest run
  std::int32_t dim;
};

/// Products of rows of a scratch with a vector, or of each row with itself. Products of elements are rounded to f32,
/// and added in double from the first one on, so that the result has the same bits on every device. REQUIRES: dim is a
/// multiple of 8 up to 256; element f16 or bf16; `rows` is a multiple of 16.
struct ProductsTask {
  const void* rows;     ///< [count][dim] of `element`
  const float* vector;  ///< [dim]; null: each row itself
  double* out;          ///< [count]
  Element element;
  std::int32_t count, dim;
};

/// Version of the structs and functions.
inline constexpr std::int32_t kKernelVersion = 2;

/// Functions exported by a library of kernels. They return null, or the reason why nothing was queued.
struct Kernels {
  std::int32_t version;
  const char* (*prefill)(const PrefillTask&, void* stream);
  const char* (*observe)(const ObserveTask&, void* stream);
  const char* (*decode)(const DecodeTask&, void* stream);
  const char* (*store)(const StoreTask&, void* stream);
  const char* (*products)(const ProductsTask&, void* stream);
};

}  // namespace winnow::device

extern "C" const winnow::device::Kernels* winnow_kernels();
