// SPDX-License-Identifier: Apache-2.0
#include "cache/past_rows.h"

namespace winnow::cache {

void PastRows::begin_layer(int head_dim, std::span<const int> entries) {
  dim_ = head_dim;
  first_.clear();
  std::size_t all = 0;
  for (const int of_head : entries) {
    first_.push_back(all);
    all += as_size(of_head);
  }
  count_.assign(entries.size(), 0);
  const std::size_t bytes = all * row_bytes(type_, dim_);
  for (auto* const buffer : {&keys_, &values_}) {
    if (buffer->size() >= bytes) continue;
    *buffer = Buffer();  // frees the old one first: both at once would be the peak
    *buffer = Buffer(account_, bytes, "a layer's entries of the text before");
  }
}

void PastRows::add(int head, const LaneRun& run, const Rope& rope) {
  const std::size_t bytes = row_bytes(type_, dim_);
  std::vector<float> row(as_size(dim_));
  for (int i = 0; i < run.entries(); ++i) {
    const int from = run.centres == nullptr ? i : run.centres[i] - run.first_slot;
    const std::size_t to = (first_[as_size(head)] + as_size(count_[as_size(head)]++)) * bytes;
    decode_row(run.keys.type, run.keys.row(from), row);
    if (run.scales != nullptr) {
      for (float& x : row) x *= run.scales[i];
    }
    const std::int64_t turn = (run.rotate_to == nullptr ? 0 : run.rotate_to[i]) - run.query_shift;
    if (turn != 0) rope.shift(row.data(), turn);
    encode_row(type_, row, keys_.data() + to);
    decode_row(run.values.type, run.values.row(from), row);
    encode_row(type_, row, values_.data() + to);
  }
}

Rows PastRows::rows(const Buffer& buffer, int head) const {
  const std::size_t stride = row_bytes(type_, dim_);
  return {buffer.data() + first_[as_size(head)] * stride, stride, count(head), dim_, type_};
}

}  // namespace winnow::cache
