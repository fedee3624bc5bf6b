// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/model_impl.h"
#include "eval/attention/measures.h"
#include "eval/attention/observed.h"
#include "eval/attention/output_projection.h"
#include "eval/measures/distance.h"
#include "eval/measures/steps.h"

namespace winnow::eval {

namespace {

double l1(std::span<const double> x) {
  return std::accumulate(x.begin(), x.end(), 0.0, [](double sum, double y) { return sum + std::abs(y); });
}

/// Change of a query head's output when some entries are evicted, and the attention that they had.
struct Change {
  std::vector<double> output;  ///< [d]
  double evicted = 0;
};

std::vector<double> output_of(const HeadAttention& attention, std::span<const double> row, std::size_t dim) {
  std::vector<double> out(dim);
  for (std::size_t j = 0; j < row.size(); ++j) {
    const auto value = attention.value(static_cast<int>(j));
    for (std::size_t c = 0; c < dim; ++c) out[c] += row[j] * static_cast<double>(value[c]);
  }
  return out;
}

Change change_of(const HeadAttention& attention, std::span<const double> row, const std::vector<double>& full,
                 const std::vector<char>& keeps) {
  Change out{full, 0};
  for (std::size_t j = 0; j < row.size(); ++j) {
    if (keeps[j] != 0) continue;
    out.evicted += row[j];
    const auto value = attention.value(static_cast<int>(j));
    for (std::size_t c = 0; c < full.size(); ++c) out.output[c] -= row[j] * static_cast<double>(value[c]);
  }
  // Renormalizes over the kept entries. If nothing is kept, the output is zero.
  const double left = 1 - out.evicted;
  for (std::size_t c = 0; c < full.size(); ++c) out.output[c] = (left > 0 ? out.output[c] / left : 0) - full[c];
  return out;
}

/// One layer's queries with one cache.
struct LayerLoss {
  std::vector<std::vector<double>> change;  ///< [query][width] of the layer's output
  std::vector<double> evicted;              ///< [query] attention, all heads together
};

class Loss {
 public:
  /// Observes the queries of the tokens from `first` on, and treats these tokens as kept.
  Loss(const model::Weights& weights, AllKept kept, int first)
      : weights_(weights), kept_(std::move(kept)), first_(first), sums_(kept_.size()) {}

  void add(const LayerAttention& layer) {
    const auto& shape = layer.view.shape;
    const OutputProjection projection(weights_, layer.view.number);
    const auto queries = as_size(layer.tokens() - first_);
    const std::vector<std::vector<double>> zeros(queries, std::vector<double>(as_size(projection.width())));
    auto full = zeros;
    std::vector<LayerLoss> losses(kept_.size(), LayerLoss{zeros, std::vector<double>(queries)});
    double largest = 0;
    for (int kv_head = 0; kv_head < shape.kv_heads; ++kv_head) {
      const HeadAttention attention(layer, kv_head);
      const auto keeps = masks(layer, kv_head);
      for (int g = 0; g < shape.group(); ++g) {
        const int head = kv_head * shape.group() + g;
        largest = std::max(largest, projection.largest(head, attention.values()));
        for (std::size_t q = 0; q < queries; ++q) {
          const auto row = attention.row(head, first_ + static_cast<int>(q));
          const auto output = output_of(attention, row, as_size(shape.head_dim));
          projection.add(head, output, full[q]);
          for (std::size_t c = 0; c < kept_.size(); ++c) {
            const auto change = change_of(attention, row, output, keeps[c]);
            projection.add(head, change.output, losses[c].change[q]);
            losses[c].evicted[q] += change.evicted;
          }
        }
      }
    }
    for (std::size_t c = 0; c < kept_.size(); ++c) add(losses[c], full, 2 * largest, shape.query_heads, sums_[c]);
  }

  Record record(std::size_t cache) const {
    const Sums& s = sums_[cache];
    const auto mean = [](const std::vector<double>& x) {
      return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
    };
    Record out;
    out.score = mean(s.kept);
    out.values = {{"loss", mean(s.loss)}, {"relative_loss", mean(s.relative)}, {"bound", mean(s.bound)}};
    out.series = {{"loss", brief(s.loss)}, {"bound", brief(s.bound)}};
    return out;
  }

 private:
  /// Means over the queries, [layer].
  struct Sums {
    std::vector<double> loss;
    std::vector<double> relative;
    std::vector<double> bound;
    std::vector<double> kept;  ///< share of the attention
  };

  static void add(const LayerLoss& loss, const std::vector<std::vector<double>>& full, double twice_largest, int heads,
                  Sums& to) {
    const auto queries = static_cast<double>(full.size());
    double distance = 0;
    double whole = 0;
    for (std::size_t q = 0; q < full.size(); ++q) {
      distance += l1(loss.change[q]);
      whole += l1(full[q]);
    }
    const double evicted = std::accumulate(loss.evicted.begin(), loss.evicted.end(), 0.0);
    to.loss.push_back(distance / queries);
    to.relative.push_back(whole > 0 ? distance / whole : 0);
    to.bound.push_back(twice_largest * evicted / queries);
    to.kept.push_back(1 - evicted / (queries * heads));
  }

  /// True for each kept token, [cache][token].
  std::vector<std::vector<char>> masks(const LayerAttention& layer, int kv_head) const {
    std::vector<std::vector<char>> out;
    for (const auto& kept : kept_) {
      auto& mask = out.emplace_back(as_size(layer.tokens()), 0);
      for (const auto position : kept[as_size(layer.view.number)][as_size(kv_head)]) mask[as_size(position)] = 1;
      std::fill(mask.begin() + first_, mask.end(), 1);
    }
    return out;
  }

  const model::Weights& weights_;
  AllKept kept_;
  int first_;
  std::vector<Sums> sums_;  ///< [cache]
};

/// Appends tokens that the full cache generates greedily.
void generate(Session& session, Cache& full, Logits logits, int count, std::vector<Token>& to) {
  Cache* const one = &full;
  Logits* const its = &logits;
  for (int i = 0; i < count; ++i) {
    to.push_back(static_cast<Token>(best(logits)));
    if (i + 1 < count) step(session, std::span(&one, 1), std::span(&to.back(), 1), std::span(&its, 1));
  }
}

}  // namespace

Measure losing(int answer) {
  return [answer](Session& session, const TokenizedSample& tokenized, std::vector<Cache>& caches,
                  std::vector<Logits> logits) {
    auto tokens = tokens_of(tokenized);
    Loss loss(engine::weights_of(session.model()), kept_by(caches), static_cast<int>(tokens.size()));
    generate(session, caches.front(), std::move(logits.front()), answer, tokens);
    observe(session, tokens, [&](const LayerAttention& layer) { loss.add(layer); });
    std::vector<Record> out;
    for (std::size_t c = 0; c < caches.size(); ++c) out.push_back(loss.record(c));
    return out;
  };
}

}  // namespace winnow::eval
