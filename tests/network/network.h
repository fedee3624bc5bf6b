// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "network/dense_attention.h"
#include "network/executor.h"

namespace winnow::test {

/// The executor with a dense cache: the shortest way from tokens to logits.
class Network {
 public:
  Network(const std::string& path, int threads, int sequences, int longest,
          DenseAttention::Mapping mapping = DenseAttention::grouped, network::Packing packing = network::Packing::none,
          std::shared_ptr<device::Device> device = {})
      : weights_(model::Weights::load(path, {.device = std::move(device)})),
        executor_(*weights_, threads, account_, packing),
        attention_(weights_->hparams(), sequences, longest, mapping) {}

  const model::Hparams& hparams() const { return weights_->hparams(); }
  network::Executor& executor() { return executor_; }
  MemoryAccount& account() { return account_; }
  /// The rms of |q| |k| / d so far; see support/rounding.h.
  double gain() const { return attention_.gain(); }
  DenseAttention& attention() { return attention_; }
  /// -1 rotates the wrong way.
  void set_rope_sign(int sign) { rope_sign_ = sign; }

  /// Reads a prompt as sequence 0, layer by layer in chunks; returns the logits of every token, [tokens][n_vocab].
  /// Packed weights may take `spare` bytes.
  std::vector<float> prefill(std::span<const std::int32_t> tokens, int chunk, std::size_t spare = ~std::size_t{0}) {
    const int n = static_cast<int>(tokens.size());
    auto hidden = executor_.states(n, "hidden states");
    executor_.embed(tokens, hidden);
    const auto pass = executor_.begin_pass(n, spare);
    network::ExpertRows later(account_, hparams(), n);
    for (int layer = 0; layer < hparams().n_layer; ++layer) {
      const bool packs = executor_.packs_experts(pass, layer);
      for (int first = 0; first < n; first += chunk) {
        std::vector<DenseAttention::Row> rows;
        for (int i = first; i < std::min(n, first + chunk); ++i) rows.push_back({0, i});
        later.begin_chunk(first);
        executor_.run_layer(pass, layer, hidden, first, positions_of(rows), attention_,
                            {.tokens = tokens.subspan(static_cast<std::size_t>(first), rows.size()),
                             .later = packs ? &later : nullptr});
      }
      while (packs && executor_.add_experts(pass, layer, later, hidden)) continue;
    }
    std::vector<float> logits(tokens.size() * static_cast<std::size_t>(hparams().n_vocab));
    executor_.logits(hidden, 0, n, logits.data());
    return logits;
  }

  /// Runs rows of any sequences through all layers, each as if it were alone; returns logits [rows][n_vocab].
  std::vector<float> step(std::span<const std::int32_t> tokens, const std::vector<DenseAttention::Row>& rows) {
    std::vector<float> logits(tokens.size() * static_cast<std::size_t>(hparams().n_vocab));
    const auto positions = positions_of(rows);
    executor_.step(network::Rows::of_several, tokens, positions, attention_, logits);
    return logits;
  }

 private:
  std::vector<std::int32_t> positions_of(const std::vector<DenseAttention::Row>& rows) {
    attention_.set_rows(rows);
    std::vector<std::int32_t> out;
    for (const auto& row : rows) out.push_back(rope_sign_ * row.position);
    return out;
  }

  MemoryAccount account_;
  std::shared_ptr<const model::Weights> weights_;
  network::Executor executor_;
  DenseAttention attention_;
  int rope_sign_ = 1;
};

inline std::vector<std::int32_t> random_tokens(int n, int vocabulary, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<std::int32_t> any(3, vocabulary - 1);
  std::vector<std::int32_t> out(n);
  for (auto& token : out) token = any(random);
  return out;
}

/// The largest relative difference, in the L2 norm, between corresponding rows of two matrices.
inline double worst_row(std::span<const float> got, std::span<const float> expected, int columns) {
  double worst = 0;
  const auto width = static_cast<std::size_t>(columns);
  for (std::size_t begin = 0; begin < expected.size(); begin += width) {
    double difference = 0;
    double norm = 0;
    for (std::size_t i = begin; i < begin + width; ++i) {
      difference += (static_cast<double>(got[i]) - expected[i]) * (static_cast<double>(got[i]) - expected[i]);
      norm += static_cast<double>(expected[i]) * expected[i];
    }
    // Not std::max: NaN must not be lost.
    const double error = std::sqrt(difference / norm);
    if (!(error <= worst)) worst = error;
  }
  return worst;
}

}  // namespace winnow::test
