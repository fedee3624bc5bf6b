// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "attention/moments.h"
#include "base/as_size.h"
#include "cache/scratch.h"
#include "policy/methods/presets.h"
#include "policy/rows.h"

namespace winnow::policy::methods {

namespace {

constexpr const char* kQueryFilters = "query filters";

/// First eigenvector of `products` [d][d], the mean of some vectors' outer products, by power iteration: the unit
/// vector along which they are longest. Zeros if all vectors are 0.
std::vector<double> main_direction(const std::vector<double>& products, std::size_t dim) {
  constexpr int kMost = 10000;
  constexpr double kStill = 1e-12;
  std::size_t largest = 0;
  for (std::size_t i = 0; i < dim; ++i) {
    if (products[i * dim + i] > products[largest * dim + largest]) largest = i;
  }
  std::vector<double> out(dim);
  out[largest] = 1;
  double moved = 1;
  for (int i = 0; i < kMost && moved > kStill; ++i) {
    std::vector<double> next(dim);
    for (std::size_t r = 0; r < dim; ++r)
      next[r] =
          std::inner_product(out.begin(), out.end(), products.begin() + static_cast<std::ptrdiff_t>(r * dim), 0.0);
    const double length = std::sqrt(std::inner_product(next.begin(), next.end(), next.begin(), 0.0));
    if (!(length > 0)) return next;
    moved = 0;
    for (std::size_t r = 0; r < dim; ++r) {
      next[r] /= length;
      moved = std::max(moved, std::abs(next[r] - out[r]));
    }
    out = std::move(next);
  }
  return out;
}

/// Observes rotated queries.
class QueryFilters : public Calibrator {
 public:
  explicit QueryFilters(const CalibratedLayer& layer)
      : size_(layer), moments_(layer.query_heads, layer.head_dim, as_rotated(), kUnlikeOthers) {}

  static std::size_t bytes(const CalibratedLayer& layer) {
    return attention::QueryMoments::bytes(layer.query_heads, layer.head_dim);
  }

  ObserverNeeds needs() const override { return {.queries = true}; }
  void see_rows(const LayerRows& rows, Worker worker) override {
    moments_.add(rows.queries, rows.scratch.positions().subspan(as_size(rows.first), as_size(rows.count)), worker);
  }
  std::vector<float> numbers() override {
    const auto dim = as_size(size_.head_dim);
    const int group = size_.query_heads / size_.kv_heads;
    std::vector<float> out(as_size(size_.kv_heads) * dim);
    for (int head = 0; head < size_.query_heads; ++head) {
      const auto direction = filter_of(head);
      for (std::size_t c = 0; c < dim; ++c)
        out[as_size(head / group) * dim + c] += static_cast<float>(direction[c] / group);
    }
    return out;
  }

 private:
  static const Rope& as_rotated() {
    static const Rope rope;
    return rope;
  }
  /// Filter of a query head, with the sign of its mean query.
  std::vector<double> filter_of(int head) const {
    const auto mean = moments_.mean(head);
    auto products = moments_.covariance(head);
    const std::size_t dim = mean.size();
    for (std::size_t i = 0; i < products.size(); ++i) products[i] += mean[i / dim] * mean[i % dim];
    auto out = main_direction(products, dim);
    const bool opposite = std::inner_product(out.begin(), out.end(), mean.begin(), 0.0) < 0;
    for (double& x : out) x = opposite ? -x : x;
    return out;
  }

  CalibratedLayer size_;
  attention::QueryMoments moments_;
};

Scores along_filters(const LayerView& view, const AlwaysKept& /*always_kept*/) {
  const auto dim = as_size(view.shape.head_dim);
  const auto filters = view.calibration.numbers(kQueryFilters, as_size(view.shape.kv_heads) * dim);
  Scores scores(view.shape.kv_heads, view.tokens());
  for (int head = 0; head < scores.heads(); ++head) {
    const auto filter = filters.subspan(as_size(head) * dim, dim);
    for_each_row(view.scratch.keys(head), [&](int j, std::span<const float> key) {
      scores.head(head)[as_size(j)] =
          static_cast<float>(std::inner_product(key.begin(), key.end(), filter.begin(), 0.0));
    });
  }
  return scores;
}

}  // namespace

/// Q-Filters (Godey et al., 2025, "Q-Filters: Leveraging QK Geometry for Efficient KV Cache Compression", section 3),
/// as in kvpress: rotated queries cluster around one direction, found by the session's calibration. Keys along it get
/// attention.
///   sinks  first tokens that are always kept
Preset qfilter() {
  return {.name = "qfilter",
          .summary = "keys that point to where a calibration has found most queries",
          .paper = "Godey et al. 2025, Q-Filters: Leveraging QK Geometry for Efficient KV Cache Compression",
          .options = {{"sinks", Option::Integer{0, 0, 65536}, "first tokens that are always kept"}},
          .build = [](const Options& options) {
            Method method;
            method.calibration =
                calibrated_by<QueryFilters>(kQueryFilters, "main direction of each query head's rotated queries");
            rank_by(method, "product of the key with the filter of its head", options.integer("sinks"), along_filters);
            method.selection.signed_scores = true;
            return method;
          }};
}

}  // namespace winnow::policy::methods
