#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "graph/attention_op.h"
#include "model/hparams.h"

namespace winnow::test {

/// Causal attention as a textbook has it: dense f32 keys and values for each layer and sequence, double precision,
/// plain loops. Shares nothing with src/attention.
class DenseAttention : public graph::AttentionOp {
 public:
  struct Row {
    int sequence = 0;
    int position = 0;  ///< also its place among the sequence's entries
  };
  /// Which KV head a query head reads.
  using Mapping = int (*)(int query_head, int query_heads, int kv_heads);

  static int grouped(int query_head, int query_heads, int kv_heads) { return query_head / (query_heads / kv_heads); }
  /// Wrong on purpose: neighbouring query heads read different KV heads.
  static int interleaved(int query_head, int, int kv_heads) { return query_head % kv_heads; }

  DenseAttention(const model::Hparams& hparams, int sequences, int longest, Mapping mapping = grouped)
      : h_(hparams),
        longest_(static_cast<std::size_t>(longest)),
        sequences_(static_cast<std::size_t>(sequences)),
        mapping_(mapping) {
    const auto rows = static_cast<std::size_t>(h_.n_layer) * sequences_ * longest_;
    keys_.resize(rows * width());
    values_.resize(rows * width());
  }

  void set_rows(std::vector<Row> rows) { rows_ = std::move(rows); }

  /// Shown the attention of every query that is read from now on. REQUIRES: one thread.
  using Watcher = std::function<void(int layer, const Row& row, int query_head, std::span<const double> weights)>;
  void set_watcher(Watcher watcher) { watcher_ = std::move(watcher); }

  /// The rms of |q| |k| / d over all pairs of a query and a key that it has seen. REQUIRES: one thread.
  double gain() const { return std::sqrt(gain_squares_ / static_cast<double>(pairs_)); }

  void stage(int number, const Tensors& tensors, Worker worker) noexcept override {
    if (number == 0) store(tensors, worker);
    if (number == 1) {
      for (int item = worker.index; item < tensors.rows * h_.n_head; item += worker.count)
        attend(tensors, item / h_.n_head, item % h_.n_head);
    }
  }

 private:
  static double squared_norm(const float* x, std::size_t dim) { return std::inner_product(x, x + dim, x, 0.0); }

  std::size_t width() const { return static_cast<std::size_t>(h_.n_head_kv) * static_cast<std::size_t>(h_.head_dim); }
  std::size_t offset(int layer, int sequence, int position) const {
    const auto of_sequence = static_cast<std::size_t>(layer) * sequences_ + static_cast<std::size_t>(sequence);
    return (of_sequence * longest_ + static_cast<std::size_t>(position)) * width();
  }

  void store(const Tensors& tensors, Worker worker) {
    for (int row = worker.index; row < tensors.rows; row += worker.count) {
      const Row where = rows_[static_cast<std::size_t>(row)];
      const auto to = static_cast<std::ptrdiff_t>(offset(tensors.layer, where.sequence, where.position));
      const auto from = static_cast<std::size_t>(row) * width();
      std::copy_n(tensors.k + from, width(), keys_.begin() + to);
      std::copy_n(tensors.v + from, width(), values_.begin() + to);
    }
  }

  void attend(const Tensors& tensors, int row, int head) {
    const Row where = rows_[static_cast<std::size_t>(row)];
    const auto dim = static_cast<std::size_t>(h_.head_dim);
    const auto place =
        (static_cast<std::size_t>(row) * static_cast<std::size_t>(h_.n_head) + static_cast<std::size_t>(head)) * dim;
    const std::size_t first = offset(tensors.layer, where.sequence, 0) +
                              static_cast<std::size_t>(mapping_(head, h_.n_head, h_.n_head_kv)) * dim;
    const auto seen = static_cast<std::size_t>(where.position) + 1;
    std::vector<double> weights(seen);
    for (std::size_t j = 0; j < seen; ++j) {
      const float* key = keys_.data() + first + j * width();
      for (std::size_t i = 0; i < dim; ++i) weights[j] += static_cast<double>(tensors.q[place + i]) * key[i];
      gain_squares_ += squared_norm(tensors.q + place, dim) * squared_norm(key, dim) / static_cast<double>(dim * dim);
      ++pairs_;
      weights[j] /= std::sqrt(static_cast<double>(dim));
    }
    const double largest = *std::max_element(weights.begin(), weights.end());
    double sum = 0;
    for (double& weight : weights) sum += weight = std::exp(weight - largest);
    for (double& weight : weights) weight /= sum;
    if (watcher_) watcher_(tensors.layer, where, head, weights);
    for (std::size_t i = 0; i < dim; ++i) {
      double out = 0;
      for (std::size_t j = 0; j < seen; ++j) out += weights[j] * values_[first + j * width() + i];
      tensors.out[place + i] = static_cast<float>(out);
    }
  }

  const model::Hparams& h_;
  std::size_t longest_;
  std::size_t sequences_;
  Mapping mapping_;
  std::vector<Row> rows_;
  Watcher watcher_;
  std::vector<float> keys_;  ///< [layer][sequence][position][KV head][d]
  std::vector<float> values_;
  double gain_squares_ = 0;
  std::int64_t pairs_ = 0;
};

}  // namespace winnow::test
