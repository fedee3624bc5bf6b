// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "attention/products.h"
#include "base/as_size.h"
#include "policy/views.h"
#include "winnow/session.h"

namespace winnow::eval {

/// One layer after all tokens of a prompt have passed it, with their queries.
struct LayerAttention {
  policy::LayerView view;                                 ///< keys and values of all tokens
  std::span<const float> queries;                         ///< [N][H_q][d], rotated
  std::span<const float> logsums;                         ///< [N][H_q] logarithm of each query's sum of exp(logit)
  const attention::ColumnStatistics* sums = nullptr;      ///< of the attention of all queries
  const attention::ColumnStatistics* diagonal = nullptr;  ///< of each query at its own token

  int tokens() const { return view.tokens(); }
  std::span<const float> query(int token, int query_head) const;
};

/// Reads a prompt with the full cache, and calls `look` for each layer without a window when all tokens have passed it.
/// Throws InputError if all layers have windows or if layers share keys, and what Session::prefill() throws.
void observe(Session& session, std::span<const Token> tokens, const std::function<void(const LayerAttention&)>& show);

/// Attention of the queries that read one KV head, one row at a time. Products in f32, softmax in double.
class HeadAttention {
 public:
  HeadAttention(const LayerAttention& layer, int kv_head);

  /// Attention of a token's query to the tokens up to itself, [token + 1]: a softmax of `gain` times the logits. It
  /// adds up to 1 together with the sink's share. REQUIRES: a query head that reads this KV head.
  std::vector<double> row(int query_head, int token, double gain = 1) const;
  /// [N][d]
  std::span<const float> values() const { return values_; }
  std::span<const float> value(int token) const { return values().subspan(as_size(token) * dim_, dim_); }

 private:
  const LayerAttention& layer_;
  std::size_t dim_;
  attention::PackedRows keys_;
  std::vector<float> values_;
};

/// Rows of a scratch in f32, [count][d].
std::vector<float> decoded(const cache::Rows& rows);

/// Numbers rounded to five digits, as series in records have them.
std::vector<double> brief(std::span<const double> numbers);

/// 0 for an empty list.
double mean(std::span<const double> numbers);

}  // namespace winnow::eval
