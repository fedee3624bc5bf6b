// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/as_size.h"
#include "winnow/policy/attention.h"

namespace winnow::attention {

bool QueryRowSet::contains(int i, int n) const {
  switch (kind) {
    case Kind::last:
      return i >= n - count;
    case Kind::all:
    case Kind::band:
    case Kind::copies:
      return true;
    case Kind::listed:
      return std::binary_search(list.begin(), list.end(), i);
  }
  return false;
}

int QueryRowSet::first(int n) const {
  switch (kind) {
    case Kind::last:
      return std::max(0, n - count);
    case Kind::all:
    case Kind::band:
    case Kind::copies:
      return 0;
    case Kind::listed:
      return list.empty() ? n : list.front();
  }
  return 0;
}

ColumnStatistics::ColumnStatistics(ColumnRequest request, int query_heads, int n)
    : request_(std::move(request)), query_heads_(query_heads), n_(n), values_(as_size(query_heads) * as_size(n)) {}

void ColumnStatistics::take_state(int rows, const float* from) {
  for (int h = 0; h < query_heads_; ++h)
    std::copy_n(from + static_cast<std::ptrdiff_t>(h) * rows, rows, head(h).data());
}

void ColumnStatistics::passed(int h, int rows) {
  if (const auto kept = kept_.find(rows); kept != kept_.end())
    std::copy_n(head(h).data(), rows, kept->second + static_cast<std::ptrdiff_t>(h) * rows);
}

namespace {

std::vector<std::int32_t> rows_of(const QueryRowSet& which, int n) {
  std::vector<std::int32_t> out;
  for (int i = 0; i < n; ++i) {
    if (which.contains(i, n)) out.push_back(i);
  }
  return out;
}

}  // namespace

QueryRows::QueryRows(QueryRowSet which, int n, int query_heads, int head_dim)
    : which_(std::move(which)),
      dim_(as_size(head_dim)),
      width_(as_size(query_heads) * dim_),
      rows_(rows_of(which_, n)) {}

void QueryRows::begin_layer() {
  queries_.resize(queries_.size() + rows_.size() * width_);
  outputs_.resize(queries_.size());
}

void QueryRows::store(int i, const float* queries, const float* outputs) {
  const auto found = std::lower_bound(rows_.begin(), rows_.end(), i);
  if (found == rows_.end() || *found != i) return;
  const auto from_end = (rows_.end() - found) * static_cast<std::ptrdiff_t>(width_);
  std::copy_n(queries, width_, queries_.end() - from_end);
  std::copy_n(outputs, width_, outputs_.end() - from_end);
}

std::size_t QueryRows::bytes(const QueryRowSet& which, int n, int query_heads, int head_dim, int layers) {
  return 2 * as_size(layers) * rows_of(which, n).size() * as_size(query_heads) * as_size(head_dim) * sizeof(float);
}

}  // namespace winnow::attention
