// SPDX-License-Identifier: Apache-2.0
#include "eval/attention/similarity.h"

#include <algorithm>
#include <numeric>

#include "engine/model_impl.h"
#include "eval/attention/global_local.h"
#include "eval/attention/masses.h"
#include "eval/attention/measures.h"
#include "policy/rows.h"
#include "winnow/error.h"

namespace winnow::eval {

namespace {

constexpr double kSimilar = 0.6;        // tau of EMS's figure 4
constexpr double kShareOfScore = 0.95;  // zeta

/// Rows scaled to length 1; rows of length 0 stay as they are.
std::vector<float> directions(std::span<const float> rows, std::size_t dim) {
  std::vector<float> out(rows.begin(), rows.end());
  for (std::size_t first = 0; first < out.size(); first += dim) {
    const auto row = std::span(out).subspan(first, dim);
    const double length = policy::norm(row);
    for (float& x : row) x = length > 0 ? static_cast<float>(static_cast<double>(x) / length) : 0;
  }
  return out;
}

/// Similarities of each KV head so far.
struct Repetition {
  std::vector<double> redundancy;
  std::vector<double> sparsity;
  std::vector<double> keys;
  std::vector<double> values;

  void add(const LayerAttention& layer) {
    for (int kv_head = 0; kv_head < layer.view.shape.kv_heads; ++kv_head) {
      const HeadAttention attention(layer, kv_head);
      const auto similarity =
          similarity_of(unrotated_keys(layer, kv_head), attention.values(), layer.view.shape.head_dim, kSimilar);
      redundancy.push_back(similarity.redundant);
      keys.push_back(similarity.keys);
      values.push_back(similarity.values);
      sparsity.push_back(1 - fewest_with(GlobalLocal(layer, attention, kv_head).scores(), kShareOfScore));
    }
  }

  Record record() const {
    const auto mean = [](const std::vector<double>& x) {
      return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
    };
    Record out;
    out.score = mean(redundancy);
    out.values = {{"sparsity", mean(sparsity)}, {"key_similarity", mean(keys)}, {"value_similarity", mean(values)}};
    out.series = {{"redundancy", brief(redundancy)},
                  {"sparsity", brief(sparsity)},
                  {"key_similarity", brief(keys)},
                  {"value_similarity", brief(values)}};
    return out;
  }
};

}  // namespace

std::vector<float> unrotated_keys(const LayerAttention& layer, int kv_head) {
  const auto& view = layer.view;
  const float magnitude = policy::uneven_magnitude(view.rope, view.shape.head_dim);
  auto out = decoded(view.scratch.keys(kv_head));
  const auto dim = as_size(view.shape.head_dim);
  for (int j = 0; j < layer.tokens(); ++j) {
    const auto key = std::span(out).subspan(as_size(j) * dim, dim);
    view.rope.shift(key.data(), -static_cast<std::int64_t>(view.scratch.positions()[as_size(j)]));
    if (magnitude != 1) policy::stretch(view.rope, 1 / magnitude, key);
  }
  return out;
}

Similarity similarity_of(std::span<const float> keys, std::span<const float> values, int dim, double threshold) {
  constexpr std::size_t kTogether = 64;  // entries that are compared with all others
  const auto d = as_size(dim);
  const auto unit_keys = directions(keys, d);
  const auto unit_values = directions(values, d);
  const attention::PackedRows packed_keys(unit_keys, dim);
  const attention::PackedRows packed_values(unit_values, dim);
  const auto stride = as_size(packed_keys.stride());
  std::vector<float> key_cosines(kTogether * stride);
  std::vector<float> value_cosines(kTogether * stride);
  const std::size_t n = keys.size() / d;
  Similarity out;
  double redundant = 0;
  for (std::size_t first = 0; first < n; first += kTogether) {
    const std::size_t count = std::min(kTogether, n - first);
    packed_keys.multiply(std::span(unit_keys).subspan(first * d, count * d), key_cosines);
    packed_values.multiply(std::span(unit_values).subspan(first * d, count * d), value_cosines);
    for (std::size_t i = 0; i < count; ++i) {
      double most = -1;
      for (std::size_t j = 0; j < first + i; ++j) {
        const auto key = static_cast<double>(key_cosines[i * stride + j]);
        const auto value = static_cast<double>(value_cosines[i * stride + j]);
        out.keys += key;
        out.values += value;
        most = std::max(most, key * value);
      }
      redundant += most >= threshold ? 1 : 0;
    }
  }
  const double pairs = std::max(1.0, static_cast<double>(n) * static_cast<double>(n - 1) / 2);
  out.keys /= pairs;
  out.values /= pairs;
  out.redundant = redundant / static_cast<double>(n);
  return out;
}

Measure repeating() {
  return [](Session& session, const TokenizedSample& tokenized, std::vector<Cache>& caches,
            const std::vector<std::vector<float>>&) {
    if (!engine::hparams_of(session.model()).keys_turn())
      throw InputError(
          "attention/redundancy needs keys that can be un-rotated, but this architecture norms them after RoPE");
    Repetition repetition;
    observe(session, tokens_of(tokenized), [&](const LayerAttention& layer) { repetition.add(layer); });
    return std::vector(caches.size(), repetition.record());
  };
}

}  // namespace winnow::eval
