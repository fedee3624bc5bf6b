// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "winnow/counted_vector.h"
#include "winnow/export.h"

namespace winnow::attention {

/// Attention parameters of a layer. Query head h reads KV head h / group().
struct Shape {
  int query_heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  float scale = 0.0F;  ///< on q·k, usually 1/sqrt(head_dim)
  int window = 0;      ///< keys that a query of a prompt sees, itself included; 0: all up to itself
  float cap = 0.0F;    ///< soft cap of logits; 0: none
  /// [H_q] Learnt sink logits: they take part in the softmax without a key, so attention to the keys adds up to less
  /// than 1. Empty: none.
  std::span<const float> sink_logits = {};

  int group() const { return query_heads / kv_heads; }
  /// Sink logit of a query head; empty: none.
  std::span<const float> sink_of(int query_head) const {
    return sink_logits.empty() ? sink_logits : sink_logits.subspan(static_cast<std::size_t>(query_head), 1);
  }
  /// Applies the soft cap to a logit: cap tanh(z / cap).
  float capped(float z) const { return cap > 0 ? cap * std::tanh(z / cap) : z; }
  /// Logit of a query and a key from their dot product.
  float logit(float product) const { return capped(scale * product); }
};

/// Selects the observed query rows of a prompt of N tokens, by index 0 … N-1.
struct WINNOW_EXPORT QueryRowSet {
  enum class Kind : std::uint8_t {
    last,  ///< the last `count` rows
    all,
    band,    ///< all rows, each only at itself and the `count` keys before it
    listed,  ///< the rows in `list`, ascending
    copies,  ///< all rows, each only at the key that it copies and the next one; see ColumnStatistics::begin_copy()
  };
  Kind kind = Kind::all;
  int count = 0;
  std::vector<std::int32_t> list;

  bool operator==(const QueryRowSet&) const = default;
  /// True if row i of a prompt of n rows is observed.
  bool contains(int i, int n) const;
  /// The first observed row of a prompt of n rows; n: there is none.
  int first(int n) const;
};

/// A range of keys; by default all.
struct KeyRange {
  int begin = 0;
  int end = std::numeric_limits<int>::max();

  bool operator==(const KeyRange&) const = default;
};

/// Reduction of each key's attention probabilities over the observed rows.
enum class Reduction : std::uint8_t { sum, max };

/// Factor of a row's probabilities before the reduction.
enum class RowScale : std::uint8_t {
  one,
  inverse_input,  ///< 1 / Euclidean norm of the row's layer input
};

/// Consecutive tokens of a prompt that attend to all tokens of their own tile and to no others, by the softmax of q·k
/// without scale, cap and sinks. Tiles are counted from the prompt's first token; the last one may be shorter.
struct Tiles {
  /// Padding of a short tile: nothing, or tokens with zero queries and keys, as in kvpress.
  enum class Rest : std::uint8_t { nothing, zeros };
  int length = 0;
  int before = 0;  ///< first tokens that belong to no tile
  int after = 0;   ///< last tokens that belong to no tile
  Rest rest = Rest::nothing;

  bool operator==(const Tiles&) const = default;
};

/// Request for column statistics, which attention records.
struct ColumnRequest {
  QueryRowSet rows;
  Reduction reduction = Reduction::sum;
  /// Logit factors of each of the last rows, first to last, for the recorded softmax; empty: 1. The layer's output uses
  /// the plain softmax. REQUIRES: kind last, reduction sum, one factor for each observed row.
  std::vector<float> power = {};
  /// Probability factors of each of the last rows, first to last; empty: 1. REQUIRES: kind last, one positive factor
  /// for each observed row; no powers.
  std::vector<float> weight = {};
  RowScale scale = RowScale::one;

  /// Weight of an observed row of a prompt of n rows.
  float weight_of(int row, int n) const {
    return weight.empty() ? 1.0F : weight[weight.size() - static_cast<std::size_t>(n - row)];
  }
  bool operator==(const ColumnRequest&) const = default;
};

/// Column statistics of the attention matrix A[h, i, j] (full causal softmax rows): for each query head h and key j the
/// reduction over the observed rows i. 0 for keys that no observed row sees. Layout [H_q][n].
class WINNOW_EXPORT ColumnStatistics {
 public:
  ColumnStatistics(ColumnRequest request, int query_heads, int n);

  const ColumnRequest& request() const { return request_; }
  int query_heads() const { return query_heads_; }
  int size() const { return n_; }
  /// Begins another layer: resets all statistics for `query_heads` query heads.
  void begin_layer(int query_heads) {
    query_heads_ = query_heads;
    values_.assign(static_cast<std::size_t>(query_heads) * static_cast<std::size_t>(n_), 0.0F);
  }
  /// Continues after the first `rows` rows, from their statistics for their own keys, [H_q][rows].
  void take_state(int rows, const float* from);
  /// The next rows copy tokens: row i that of key i - `distance`. For QueryRowSet::Kind::copies.
  void begin_copy(int distance) { copy_distance_ = distance; }
  int copy_distance() const { return copy_distance_; }
  /// Copies these statistics to `to` [H_q][rows] when the first `rows` rows have passed. REQUIRES: a multiple of 64.
  void keep_state(int rows, float* to) { kept_.emplace(rows, to); }
  /// Attention has added the first `rows` rows to a head's statistics, and no others.
  void passed(int h, int rows);
  /// Statistics of one query head, [n].
  std::span<float> head(int h) { return {values_.data() + offset(h), static_cast<std::size_t>(n_)}; }
  std::span<const float> head(int h) const { return {values_.data() + offset(h), static_cast<std::size_t>(n_)}; }

 private:
  std::size_t offset(int h) const { return static_cast<std::size_t>(h) * static_cast<std::size_t>(n_); }

  ColumnRequest request_;
  int query_heads_;
  int n_;
  int copy_distance_ = 0;
  CountedVector<float> values_;
  std::map<int, float*> kept_;  ///< destinations of states, by rows
};

/// A view of column statistics, in an order of its own.
class Observed {
 public:
  Observed() = default;
  /// Views all of them; they must outlive the view.
  Observed(const std::vector<ColumnStatistics>& all) {  // NOLINT(google-explicit-constructor): it is nothing but a view
    for (const auto& one : all) add(one);
  }

  void add(const ColumnStatistics& one) { all_.push_back(&one); }
  std::size_t size() const { return all_.size(); }
  const ColumnStatistics& operator[](std::size_t i) const { return *all_[i]; }

 private:
  std::vector<const ColumnStatistics*> all_;
};

/// Queries and attention outputs of some rows of a prompt in a layer. If several layers read the same keys, contains
/// the rows of each layer, in layer order.
class WINNOW_EXPORT QueryRows {
 public:
  /// Rows of a prompt of n tokens. REQUIRES: begin_layer() before the first store().
  QueryRows(QueryRowSet which, int n, int query_heads, int head_dim);

  const QueryRowSet& which() const { return which_; }
  /// Begins the rows of one more layer.
  void begin_layer();
  /// Stores row i of the layer, [H_q][d] each, unless it was not requested. Threads may store different rows.
  void store(int i, const float* queries, const float* outputs);

  int size() const { return static_cast<int>(outputs_.size() / width_); }
  /// Position of row r in the prompt.
  int row(int r) const { return rows_[static_cast<std::size_t>(r) % rows_.size()]; }
  /// Query of a query head in row r, rotated to the row's position, [d].
  std::span<const float> query(int r, int head) const { return {queries_.data() + offset(r, head), dim_}; }
  /// Attention output of a query head in row r, before the output projection, [d].
  std::span<const float> output(int r, int head) const { return {outputs_.data() + offset(r, head), dim_}; }
  /// Bytes for the rows of `layers` layers.
  static std::size_t bytes(const QueryRowSet& which, int n, int query_heads, int head_dim, int layers);

 private:
  std::size_t offset(int r, int head) const {
    return static_cast<std::size_t>(r) * width_ + static_cast<std::size_t>(head) * dim_;
  }

  QueryRowSet which_;
  std::size_t dim_;
  std::size_t width_;               ///< H_q d
  std::vector<std::int32_t> rows_;  ///< positions in the prompt, ascending
  CountedVector<float> queries_;    ///< [layer][row][H_q][d]
  CountedVector<float> outputs_;
};

}  // namespace winnow::attention
