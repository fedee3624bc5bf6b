// SPDX-License-Identifier: Apache-2.0
#include "engine/query_sums.h"

#include "base/as_size.h"

namespace winnow::engine {

QuerySums::QuerySums(int query_heads, int head_dim)
    : heads_(as_size(query_heads)), dim_(as_size(head_dim)), sums_(heads_ * dim_), length_sums_(heads_ * (dim_ / 2)) {}

void QuerySums::add(std::span<const float> queries, std::span<const std::int32_t> positions, const Rope& rope) {
  std::vector<float> back(2 * rope.frequency.size());
  std::vector<float> lengths(dim_ / 2);
  for (std::size_t i = 0; i < positions.size(); ++i) {
    rope.angles(-std::int64_t{positions[i]}, back.data());
    for (std::size_t head = 0; head < heads_; ++head) {
      const auto rotated = queries.subspan((i * heads_ + head) * dim_, dim_);
      std::vector<float> query(rotated.begin(), rotated.end());
      rope.rotate(query.data(), back.data());
      rope.pair_lengths(query, lengths);
      for (std::size_t c = 0; c < dim_; ++c) sums_[head * dim_ + c] += query[c];
      for (std::size_t c = 0; c < lengths.size(); ++c) length_sums_[head * lengths.size() + c] += lengths[c];
    }
  }
  count_ += static_cast<double>(positions.size());
}

policy::QueryStatistics QuerySums::statistics() const {
  policy::QueryStatistics out;
  for (const double sum : sums_) out.mean.push_back(static_cast<float>(sum / count_));
  for (const double sum : length_sums_) out.mean_lengths.push_back(static_cast<float>(sum / count_));
  return out;
}

}  // namespace winnow::engine
