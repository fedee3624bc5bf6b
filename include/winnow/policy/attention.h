// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "winnow/counted_vector.h"
#include "winnow/export.h"

namespace winnow::attention {

/// Attention of one layer. Query head h reads KV head h / group().
struct Shape {
  int query_heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  float scale = 0.0F;  ///< on q·k, usually 1/sqrt(head_dim)
  int window = 0;      ///< keys that a query of a prompt sees, its own included; 0: all up to its own
  float cap = 0.0F;    ///< the soft cap of logits; 0: there is none
  /// [H_q] logits of what a query may attend to instead of keys, learnt with the network: attention to the keys adds up
  /// to less than 1. Empty: there are none.
  std::span<const float> sink_logits = {};

  int group() const { return query_heads / kv_heads; }
  /// The sink of a query head; empty: there is none.
  std::span<const float> sink_of(int query_head) const {
    return sink_logits.empty() ? sink_logits : sink_logits.subspan(static_cast<std::size_t>(query_head), 1);
  }
  /// The soft cap of a logit: cap tanh(z / cap).
  float capped(float z) const { return cap > 0 ? cap * std::tanh(z / cap) : z; }
  /// The logit of a query and a key with this product.
  float logit(float product) const { return capped(scale * product); }
};

/// Which query rows of a prompt are observed, by index 0 … N-1.
struct WINNOW_EXPORT ObservedRows {
  enum class Kind : std::uint8_t {
    last,  ///< the last `count` rows
    all,
    band,    ///< all rows, each at the keys at most `count` before it (itself included)
    listed,  ///< the rows in `list`, ascending
  };
  Kind kind = Kind::all;
  int count = 0;
  std::vector<std::int32_t> list;

  bool operator==(const ObservedRows&) const = default;
  /// Whether row i of a prompt of n rows is observed.
  bool contains(int i, int n) const;
};

/// Some consecutive keys; by default all.
struct KeyRange {
  int begin = 0;
  int end = std::numeric_limits<int>::max();

  bool operator==(const KeyRange&) const = default;
};

/// Reduction of each key's attention probabilities over the observed rows.
enum class Reduction : std::uint8_t { sum, max };

/// Factor of a row's probabilities before they are reduced.
enum class RowScale : std::uint8_t {
  one,
  inverse_input,  ///< 1 over the Euclidean length of the row that its query, key and value are made of
};

/// Consecutive tokens of a prompt that attend to one another alone, each to all of its tile, by the softmax of q·k
/// without scale, cap and sinks. They are counted from the prompt's first token; the last tile may be shorter.
struct Tiles {
  /// Padding of a tile that is too short: nothing, or tokens whose queries and keys are zeros, as in kvpress.
  enum class Rest : std::uint8_t { nothing, zeros };
  int length = 0;
  int before = 0;  ///< first tokens that are in no tile
  int after = 0;   ///< last ones
  Rest rest = Rest::nothing;

  bool operator==(const Tiles&) const = default;
};

/// Statistics that a method asks attention to record.
struct Observe {
  ObservedRows rows;
  Reduction reduction = Reduction::sum;
  /// Factors of the logits of each of the last rows before the softmax that is recorded, first to last;
  /// empty: 1. The layer's output is that of the plain softmax. REQUIRES: kind last, reduction sum, as many as there
  /// are observed rows.
  std::vector<float> power = {};
  /// Factors of the probabilities of each of the last rows, first to last; empty: 1. REQUIRES: kind last,
  /// as many as there are observed rows, above 0; no powers.
  std::vector<float> weight = {};
  RowScale scale = RowScale::one;

  /// For an observed row of a prompt of n rows.
  float weight_of(int row, int n) const {
    return weight.empty() ? 1.0F : weight[weight.size() - static_cast<std::size_t>(n - row)];
  }
  bool operator==(const Observe&) const = default;
};

/// Column statistics of the attention matrix A[h, i, j] (full causal softmax rows): for each query head h and key j the
/// reduction over the observed rows i. Keys that no observed row sees hold 0. Layout [H_q][n].
class WINNOW_EXPORT Observation {
 public:
  Observation(Observe what, int query_heads, int n);

  const Observe& what() const { return what_; }
  int query_heads() const { return query_heads_; }
  int size() const { return n_; }
  /// Begins another layer: forgets everything, and makes room for so many query heads.
  void begin_layer(int query_heads) {
    query_heads_ = query_heads;
    values_.assign(static_cast<std::size_t>(query_heads) * static_cast<std::size_t>(n_), 0.0F);
  }
  /// Statistics of one query head, [n].
  std::span<float> head(int h) { return {values_.data() + offset(h), static_cast<std::size_t>(n_)}; }
  std::span<const float> head(int h) const { return {values_.data() + offset(h), static_cast<std::size_t>(n_)}; }

 private:
  std::size_t offset(int h) const { return static_cast<std::size_t>(h) * static_cast<std::size_t>(n_); }

  Observe what_;
  int query_heads_;
  int n_;
  CountedVector<float> values_;
};

/// Observations that belong to somebody else, in an order of its own.
class Observed {
 public:
  Observed() = default;
  /// All of them, which outlive it.
  Observed(const std::vector<Observation>& all) {  // NOLINT(google-explicit-constructor): it is nothing but a view
    for (const auto& one : all) add(one);
  }

  void add(const Observation& one) { all_.push_back(&one); }
  std::size_t size() const { return all_.size(); }
  const Observation& operator[](std::size_t i) const { return *all_[i]; }

 private:
  std::vector<const Observation*> all_;
};

/// Some query rows of a prompt in a layer as they were: each query, and what attention gave for it. Where several
/// layers read the same keys, the rows of each of them, one layer after the other.
class WINNOW_EXPORT QueryRows {
 public:
  /// For a prompt of n rows. There are none before the first begin_layer().
  QueryRows(ObservedRows which, int n, int query_heads, int head_dim);

  const ObservedRows& which() const { return which_; }
  /// The rows to come are those of one more layer.
  void begin_layer();
  /// Row i of the layer, [H_q][d] each; one that is not wanted is passed over. Threads may store different rows.
  void store(int i, const float* queries, const float* outputs);

  int size() const { return static_cast<int>(outputs_.size() / width_); }
  /// Index of a row in the prompt.
  int row(int r) const { return rows_[static_cast<std::size_t>(r) % rows_.size()]; }
  /// Its query of a query head, rotated to the row's position, [d].
  std::span<const float> query(int r, int head) const { return {queries_.data() + offset(r, head), dim_}; }
  /// Output of attention for it, before the output projection, [d].
  std::span<const float> output(int r, int head) const { return {outputs_.data() + offset(r, head), dim_}; }
  /// Bytes of the rows of so many layers.
  static std::size_t bytes(const ObservedRows& which, int n, int query_heads, int head_dim, int layers);

 private:
  std::size_t offset(int r, int head) const {
    return static_cast<std::size_t>(r) * width_ + static_cast<std::size_t>(head) * dim_;
  }

  ObservedRows which_;
  std::size_t dim_;
  std::size_t width_;               ///< H_q d
  std::vector<std::int32_t> rows_;  ///< of the prompt, ascending
  CountedVector<float> queries_;    ///< [layer][row][H_q][d]
  CountedVector<float> outputs_;
};

}  // namespace winnow::attention
