// SPDX-License-Identifier: Apache-2.0
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <vector>

#include "attention/moments.h"
#include "base/as_size.h"
#include "cache/scratch.h"
#include "policy/methods/presets.h"
#include "policy/rows.h"

namespace winnow::policy::methods {

namespace {

constexpr const char* kQueryFilters = "query filters";

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
      const Eigen::VectorXd direction = filter_of(head);
      for (std::size_t c = 0; c < dim; ++c)
        out[as_size(head / group) * dim + c] += static_cast<float>(direction[static_cast<Eigen::Index>(c)] / group);
    }
    return out;
  }

 private:
  static const Rope& as_rotated() {
    static const Rope rope;
    return rope;
  }
  /// Filter of a query head: the unit vector along which its queries are longest, with the sign of their mean. Zeros if
  /// all queries are 0.
  Eigen::VectorXd filter_of(int head) const {
    const auto mean = moments_.mean(head);
    const auto covariance = moments_.covariance(head);
    const auto dim = static_cast<Eigen::Index>(mean.size());
    const Eigen::Map<const Eigen::VectorXd> middle(mean.data(), dim);
    const Eigen::Map<const Eigen::MatrixXd> around(covariance.data(), dim, dim);
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(around + middle * middle.transpose());
    if (!(solver.eigenvalues()[dim - 1] > 0)) return Eigen::VectorXd::Zero(dim);
    Eigen::VectorXd out = solver.eigenvectors().col(dim - 1);
    if (out.dot(middle) < 0) out = -out;
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
    const auto products =
        view.scratch.products({cache::RowProducts::Of::keys, head, filters.subspan(as_size(head) * dim, dim)});
    std::ranges::transform(products, scores.head(head).begin(), [](double x) { return static_cast<float>(x); });
  }
  return scores;
}

}  // namespace

/// Q-Filters (Godey et al., 2025, "Q-Filters: Leveraging QK Geometry for Efficient KV Cache Compression", section 3),
/// as in kvpress: rotated queries cluster around one direction, found by the session's calibration. Keys along it get
/// attention.
///   sinks  first tokens that are always kept
Preset qfilter() {
  return {
      .name = "qfilter",
      .summary = "keeps the entries whose keys lie along the queries' main direction, which a calibration has found",
      .paper = "Godey et al. 2025, Q-Filters: Leveraging QK Geometry for Efficient KV Cache Compression",
      .options = {{"sinks", Option::Integer{0, 0, 65536}, "first tokens that are always kept"}},
      .build = [](const Options& options) {
        Method method;
        method.calibration =
            calibrated_by<QueryFilters>(kQueryFilters, "main direction of each query head's rotated queries");
        rank_by(method, "product of the key and its head's filter", options.integer("sinks"), along_filters);
        method.selection.signed_scores = true;
        return method;
      }};
}

}  // namespace winnow::policy::methods
