// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "model/hparams.h"
#include "network/attention_op.h"

namespace winnow::test {

/// Textbook causal attention: dense f32 keys and values for each layer and sequence, double precision, plain loops.
/// Shares no code with src/attention.
class DenseAttention : public network::AttentionOp {
 public:
  struct Row {
    int sequence = 0;
    int position = 0;  ///< also its index among the sequence's entries
  };
  /// Maps a query head to the KV head that it reads.
  using Mapping = int (*)(int query_head, int query_heads, int kv_heads);

  static int grouped(int query_head, int query_heads, int kv_heads) { return query_head / (query_heads / kv_heads); }
  /// Wrong on purpose: neighbouring query heads read different KV heads.
  static int interleaved(int query_head, int, int kv_heads) { return query_head % kv_heads; }

  DenseAttention(const model::Hparams& hparams, int sequences, int longest, Mapping mapping = grouped)
      : h_(hparams),
        longest_(static_cast<std::size_t>(longest)),
        sequences_(static_cast<std::size_t>(sequences)),
        mapping_(mapping) {
    for (int layer = 0; layer < h_.n_layer; ++layer) {
      keys_.emplace_back(sequences_ * longest_ * width(layer));
      values_.emplace_back(sequences_ * longest_ * width(layer));
      key_squares_.emplace_back(sequences_ * longest_ * kv_heads(layer));
    }
  }

  void set_rows(std::vector<Row> rows) { rows_ = std::move(rows); }

  /// Called with the attention of every query read from now on. REQUIRES: one thread.
  using Observer = std::function<void(int layer, const Row& row, int query_head, std::span<const double> weights)>;
  void set_observer(Observer observer) { observer_ = std::move(observer); }

  /// Whether a query sees a key at or before its own position; by default it sees all.
  using Sees = std::function<bool(int layer, int kv_head, int query, int key)>;
  void set_sees(Sees sees) { sees_ = std::move(sees); }

  /// The queries and keys of one KV head of a layer before a row attends.
  struct Reading {
    std::span<const float> queries;  ///< [H_q][d] of the row
    const float* keys;               ///< of position 0
    std::size_t step;                ///< from one position's key to the next
    std::size_t dim;

    std::span<const float> query(int head) const { return queries.subspan(static_cast<std::size_t>(head) * dim, dim); }
    std::span<const float> key(int position) const { return {keys + static_cast<std::size_t>(position) * step, dim}; }
  };
  /// Called for every row and KV head from now on, before `sees`. REQUIRES: one thread.
  using Reader = std::function<void(int layer, int kv_head, const Reading& reading)>;
  void set_reader(Reader reader) { reader_ = std::move(reader); }

  /// A token's value in a KV head of a layer, [d].
  std::span<const float> value(int layer, int position, int kv_head, int sequence = 0) const {
    const auto dim = static_cast<std::size_t>(h_.layer(layer).head_dim);
    return std::span(values_[static_cast<std::size_t>(layer)])
        .subspan(offset(layer, sequence, position) + static_cast<std::size_t>(kv_head) * dim, dim);
  }

  /// Called with the input of attention for each row of a layer from now on. REQUIRES: one thread.
  using InputObserver = std::function<void(int layer, const Row& row, std::span<const float> input)>;
  void set_input_observer(InputObserver observer) { input_observer_ = std::move(observer); }

  /// The rms of scale |q| |k| / sqrt(d) over all pairs of a query and a key that it saw, which is |q| |k| / d with the
  /// usual scale 1 / sqrt(d). REQUIRES: one thread.
  double gain() const { return std::sqrt(gain_squares_ / static_cast<double>(pairs_)); }

  void phase(int number, const Tensors& tensors, Worker worker) noexcept override {
    if (number == 0 && tensors.k != nullptr) store(tensors, worker);
    for (int row = 0; number == 0 && input_observer_ && row < tensors.rows; ++row) {
      const auto width = static_cast<std::size_t>(tensors.width);
      input_observer_(tensors.layer, rows_[row], {tensors.input + static_cast<std::size_t>(row) * width, width});
    }
    if (number == 1) {
      const int heads = h_.layer(tensors.layer).n_head;
      for (int item = worker.index; item < tensors.rows * heads; item += worker.count)
        attend(tensors, item / heads, item % heads);
    }
  }

 private:
  static double squared_norm(const float* x, std::size_t dim) { return std::inner_product(x, x + dim, x, 0.0); }

  std::size_t kv_heads(int layer) const { return static_cast<std::size_t>(h_.layer(layer).n_head_kv); }
  std::size_t width(int layer) const {
    const auto& spec = h_.layer(layer);
    return static_cast<std::size_t>(spec.n_head_kv) * static_cast<std::size_t>(spec.head_dim);
  }
  std::size_t offset(int layer, int sequence, int position) const {
    return (static_cast<std::size_t>(sequence) * longest_ + static_cast<std::size_t>(position)) * width(layer);
  }

  void store(const Tensors& tensors, Worker worker) {
    const auto layer = static_cast<std::size_t>(tensors.layer);
    const std::size_t count = width(tensors.layer);
    for (int row = worker.index; row < tensors.rows; row += worker.count) {
      const Row where = rows_[row];
      const auto to = static_cast<std::ptrdiff_t>(offset(tensors.layer, where.sequence, where.position));
      const auto from = static_cast<std::size_t>(row) * count;
      std::copy_n(tensors.k + from, count, keys_[layer].begin() + to);
      std::copy_n(tensors.v + from, count, values_[layer].begin() + to);
      const auto dim = static_cast<std::size_t>(h_.layer(tensors.layer).head_dim);
      const std::size_t square = static_cast<std::size_t>(to) / dim;
      for (std::size_t head = 0; head < kv_heads(tensors.layer); ++head)
        key_squares_[layer][square + head] = squared_norm(tensors.k + from + head * dim, dim);
    }
  }

  void attend(const Tensors& tensors, int row, int head) {
    const Row where = rows_[row];
    const auto& spec = h_.layer(tensors.layer);
    const int of = h_.kv_layer(tensors.layer);
    const auto& keys = keys_[of];
    const auto& values = values_[of];
    const std::size_t step = width(tensors.layer);
    const auto dim = static_cast<std::size_t>(spec.head_dim);
    const auto place =
        (static_cast<std::size_t>(row) * static_cast<std::size_t>(spec.n_head) + static_cast<std::size_t>(head)) * dim;
    const int kv_head = mapping_(head, spec.n_head, spec.n_head_kv);
    const std::size_t first = offset(tensors.layer, where.sequence, 0) + static_cast<std::size_t>(kv_head) * dim;
    const auto seen = static_cast<std::size_t>(where.position) + 1;
    std::vector<double> weights(seen);
    const auto queries = static_cast<std::size_t>(spec.n_head) * dim;
    if (reader_)
      reader_(tensors.layer, kv_head,
              {{tensors.q + static_cast<std::size_t>(row) * queries, queries}, keys.data() + first, step, dim});
    const double scale = spec.attention_scale;
    const double gain = scale * scale * squared_norm(tensors.q + place, dim) / static_cast<double>(dim);
    for (std::size_t j = 0; j < seen; ++j) {
      const float* const key = keys.data() + first + j * step;
      gain_squares_ += gain * key_squares_[of][(first + j * step) / dim];
      ++pairs_;
      double product = 0;
      for (std::size_t i = 0; i < dim; ++i) product += static_cast<double>(tensors.q[place + i]) * key[i];
      weights[j] = scale * product;
      if (spec.attention_cap > 0) weights[j] = spec.attention_cap * std::tanh(weights[j] / spec.attention_cap);
      if (spec.window > 0 && j + static_cast<std::size_t>(spec.window) < seen)
        weights[j] = -std::numeric_limits<double>::infinity();
      if (sees_ && !sees_(tensors.layer, kv_head, where.position, static_cast<int>(j)))
        weights[j] = -std::numeric_limits<double>::infinity();
    }
    const double sink = h_.sink_logits.empty() ? -std::numeric_limits<double>::infinity()
                                               : h_.sink_logits[static_cast<std::size_t>(tensors.layer)][head];
    const double largest = std::max(sink, *std::max_element(weights.begin(), weights.end()));
    double sum = std::exp(sink - largest);
    for (double& weight : weights) sum += weight = std::exp(weight - largest);
    for (double& weight : weights) weight /= sum;
    if (observer_) observer_(tensors.layer, where, head, weights);
    std::vector<double> out(dim);
    for (std::size_t j = 0; j < seen; ++j) {
      const float* const value = values.data() + first + j * step;
      for (std::size_t i = 0; i < dim; ++i) out[i] += weights[j] * value[i];
    }
    std::ranges::transform(out, tensors.out + place, [](double x) { return static_cast<float>(x); });
  }

  const model::Hparams& h_;
  std::size_t longest_;
  std::size_t sequences_;
  Mapping mapping_;
  std::vector<Row> rows_;
  Observer observer_;
  InputObserver input_observer_;
  Sees sees_;
  Reader reader_;
  std::vector<std::vector<float>> keys_;  ///< [layer][sequence][position][KV head][d]
  std::vector<std::vector<float>> values_;
  std::vector<std::vector<double>> key_squares_;  ///< of the keys' lengths, [layer][sequence][position][KV head]
  double gain_squares_ = 0;
  std::int64_t pairs_ = 0;
};

}  // namespace winnow::test
