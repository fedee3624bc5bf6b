#include "cache/scratch.h"

#include <stdexcept>

namespace winnow::cache {

LayerScratch::LayerScratch(MemoryAccount& account, ElementType type, int kv_heads, int head_dim, int capacity)
    : type_(type), kv_heads_(kv_heads), head_dim_(head_dim), capacity_(capacity) {
  const std::size_t bytes =
      static_cast<std::size_t>(kv_heads) * static_cast<std::size_t>(capacity) * row_bytes(type, head_dim);
  keys_ = Buffer(account, bytes, "one layer's keys");
  values_ = Buffer(account, bytes, "one layer's values");
  positions_.reserve(static_cast<std::size_t>(capacity));
}

void LayerScratch::truncate(int count) { positions_.resize(static_cast<std::size_t>(count)); }

int LayerScratch::extend(std::span<const std::int32_t> positions) {
  const int first = size();
  if (first + static_cast<int>(positions.size()) > capacity_)
    throw std::logic_error("the layer's scratch is too short");
  positions_.insert(positions_.end(), positions.begin(), positions.end());
  return first;
}

void LayerScratch::store(int row, const float* keys, const float* values) {
  const std::size_t bytes = row_bytes(type_, head_dim_);
  const auto dim = static_cast<std::size_t>(head_dim_);
  for (int head = 0; head < kv_heads_; ++head) {
    const std::size_t at =
        (static_cast<std::size_t>(head) * static_cast<std::size_t>(capacity_) + static_cast<std::size_t>(row)) * bytes;
    const std::size_t from = static_cast<std::size_t>(head) * dim;
    encode_row(type_, {keys + from, dim}, keys_.data() + at);
    encode_row(type_, {values + from, dim}, values_.data() + at);
  }
}

Rows LayerScratch::keys(int head) const { return rows(keys_, head); }
Rows LayerScratch::values(int head) const { return rows(values_, head); }

Rows LayerScratch::rows(const Buffer& buffer, int head) const {
  const std::size_t bytes = row_bytes(type_, head_dim_);
  return {buffer.data() + static_cast<std::size_t>(head) * static_cast<std::size_t>(capacity_) * bytes, bytes, size(),
          head_dim_, type_};
}

}  // namespace winnow::cache
