// SPDX-License-Identifier: Apache-2.0
#include "policy/calibrations/query_statistics.h"

#include <algorithm>

#include "base/as_size.h"
#include "base/rope.h"
#include "base/worker.h"
#include "cache/scratch.h"

namespace winnow::policy {

namespace {

constexpr const char* kQueryStatistics = "query statistics";

class QuerySums : public Calibrator {
 public:
  explicit QuerySums(const CalibratedLayer& layer)
      : heads_(layer.query_heads),
        dim_(as_size(layer.head_dim)),
        counts_(as_size(heads_)),
        sums_(counts_.size() * dim_),
        length_sums_(counts_.size() * (dim_ / 2)) {}

  static std::size_t bytes(const CalibratedLayer& layer) {
    return as_size(layer.query_heads) * as_size(2 * layer.head_dim) * sizeof(double);
  }

  ObserverNeeds needs() const override { return {.queries = true}; }
  void begin_layer(const ObservedLayer& layer) override { rope_ = &layer.rope; }
  /// Each member of the team takes some heads.
  void see_rows(const LayerRows& rows, Worker worker) override {
    std::vector<float> back(2 * rope_->frequency.size());
    for (int i = std::max(0, kUnlikeOthers - rows.first); i < rows.count; ++i) {
      rope_->angles(-std::int64_t{rows.scratch.positions()[as_size(rows.first + i)]}, back.data());
      for (int head = worker.index; head < heads_; head += worker.count) {
        const float* const rotated = rows.queries + (as_size(i) * as_size(heads_) + as_size(head)) * dim_;
        add(as_size(head), {rotated, rotated + dim_}, back);
      }
    }
  }
  std::vector<float> numbers() override {
    std::vector<float> out;
    const auto add_means = [&](const std::vector<double>& sums, std::size_t width) {
      for (std::size_t i = 0; i < sums.size(); ++i) out.push_back(static_cast<float>(sums[i] / counts_[i / width]));
    };
    add_means(sums_, dim_);
    add_means(length_sums_, dim_ / 2);
    return out;
  }

 private:
  void add(std::size_t head, std::vector<float> query, std::span<const float> back) {
    rope_->rotate(query.data(), back.data());
    std::vector<float> lengths(dim_ / 2);
    rope_->pair_lengths(query, lengths);
    for (std::size_t c = 0; c < dim_; ++c) sums_[head * dim_ + c] += query[c];
    for (std::size_t c = 0; c < lengths.size(); ++c) length_sums_[head * lengths.size() + c] += lengths[c];
    counts_[head] += 1;
  }

  int heads_;
  std::size_t dim_;
  const Rope* rope_ = nullptr;       ///< of the current layer
  std::vector<double> counts_;       ///< [H_q]
  std::vector<double> sums_;         ///< [H_q][d]
  std::vector<double> length_sums_;  ///< [H_q][d / 2]
};

}  // namespace

CalibrationPart query_statistics() {
  return calibrated_by<QuerySums>(kQueryStatistics, "mean of the queries before RoPE, and mean of their lengths");
}

QueryStatistics query_statistics_of(const LayerCalibration& calibration, const attention::Shape& shape,
                                    int query_head) {
  const auto heads = as_size(shape.query_heads);
  const auto dim = as_size(shape.head_dim);
  const auto head = as_size(query_head);
  const auto numbers = calibration.numbers(kQueryStatistics, heads * (dim + dim / 2));
  return {numbers.subspan(head * dim, dim), numbers.subspan(heads * dim + head * (dim / 2), dim / 2)};
}

}  // namespace winnow::policy
