// SPDX-License-Identifier: Apache-2.0
#include "attention/moments.h"

#include <algorithm>
#include <numeric>

#include "attention/products.h"
#include "base/as_size.h"

namespace winnow::attention {

QueryMoments::QueryMoments(int query_heads, int head_dim, const Rope& rope, int first)
    : heads_(query_heads),
      dim_(head_dim),
      rope_(&rope),
      first_(first),
      count_(as_size(query_heads)),
      sums_(as_size(query_heads) * as_size(head_dim)),
      products_(sums_.size() * as_size(head_dim)) {}

std::size_t QueryMoments::bytes(int query_heads, int head_dim) {
  const auto dim = as_size(head_dim);
  return as_size(query_heads) * (1 + dim + dim * dim) * sizeof(double);
}

void QueryMoments::add(const float* q, std::span<const std::int32_t> positions, Worker worker) {
  std::vector<float> back(positions.size() * 2 * rope_->frequency.size());
  for (std::size_t r = 0; r < positions.size(); ++r) {
    rope_->angles(-static_cast<std::int64_t>(positions[r]), back.data() + r * 2 * rope_->frequency.size());
  }
  for (int head = worker.index; head < heads_; head += worker.count) add_head(q, positions, back.data(), head);
}

/// The number of rows, the sums, and the products from the diagonal on.
std::size_t QueryMoments::state_size(int head_dim) {
  const auto dim = as_size(head_dim);
  return 1 + dim + dim * (dim + 1) / 2;
}

void QueryMoments::take_state(int head, std::span<const double> state) {
  const std::size_t dim = as_size(dim_);
  const double* from = state.data();
  count_[as_size(head)] = *from++;
  std::copy_n(from, dim, sums_.data() + as_size(head) * dim);
  from += dim;
  for (std::size_t i = 0; i < dim; from += dim - i, ++i)
    std::copy_n(from, dim - i, products_.data() + (as_size(head) * dim + i) * dim + i);
}

void QueryMoments::write_state(int head, std::span<double> state) const {
  const std::size_t dim = as_size(dim_);
  double* to = state.data();
  *to++ = count_[as_size(head)];
  to = std::copy_n(sums_.data() + as_size(head) * dim, dim, to);
  for (std::size_t i = 0; i < dim; ++i)
    to = std::copy_n(products_.data() + (as_size(head) * dim + i) * dim + i, dim - i, to);
}

/// Products are summed in f32 over the rows of a call (a chunk), and in double over the calls.
void QueryMoments::add_head(const float* q, std::span<const std::int32_t> positions, const float* back, int head) {
  const std::size_t dim = as_size(dim_);
  const std::size_t rows = positions.size();
  std::vector<float> row(dim);
  std::vector<float> elements(dim * rows);  // [d][rows], 0 for skipped rows
  for (std::size_t r = 0; r < rows; ++r) {
    if (positions[r] < first_) continue;
    const float* const from = q + (r * as_size(heads_) + as_size(head)) * dim;
    row.assign(from, from + dim);
    rope_->rotate(row.data(), back + r * 2 * rope_->frequency.size());
    count_[head] += 1;
    for (std::size_t i = 0; i < dim; ++i) elements[i * rows + r] = row[i];
  }
  const PackedRows right(elements, static_cast<int>(rows));
  std::vector<float> dots(dim * as_size(right.stride()));
  right.multiply(elements, dots);
  for (std::size_t i = 0; i < dim; ++i) {
    sums_[as_size(head) * dim + i] =
        std::accumulate(elements.begin() + static_cast<std::ptrdiff_t>(i * rows),
                        elements.begin() + static_cast<std::ptrdiff_t>((i + 1) * rows), sums_[as_size(head) * dim + i]);
    double* const all = products_.data() + (as_size(head) * dim + i) * dim;
    for (std::size_t j = 0; j < dim; ++j) all[j] += dots[i * as_size(right.stride()) + j];
  }
}

std::vector<double> QueryMoments::mean(int head) const {
  std::vector<double> out(sums_.begin() + static_cast<std::ptrdiff_t>(as_size(head) * as_size(dim_)),
                          sums_.begin() + static_cast<std::ptrdiff_t>(as_size(head + 1) * as_size(dim_)));
  for (double& x : out) x /= std::max(1.0, count_[head]);
  return out;
}

std::vector<double> QueryMoments::covariance(int head) const {
  const std::size_t dim = as_size(dim_);
  const auto m = mean(head);
  std::vector<double> out(dim * dim);
  for (std::size_t i = 0; i < dim; ++i) {
    for (std::size_t j = i; j < dim; ++j) {
      const double product = products_[(as_size(head) * dim + i) * dim + j] / std::max(1.0, count_[head]);
      out[i * dim + j] = out[j * dim + i] = product - m[i] * m[j];
    }
  }
  return out;
}

}  // namespace winnow::attention
