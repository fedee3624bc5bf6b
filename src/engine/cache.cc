// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/as_size.h"
#include "engine/layers.h"
#include "engine/sequence.h"

namespace winnow {

Cache::Cache(std::unique_ptr<engine::Sequence> sequence) : impl_(std::move(sequence)) {}
Cache::Cache(Cache&&) noexcept = default;
Cache& Cache::operator=(Cache&&) noexcept = default;
Cache::~Cache() = default;

Cache Cache::clone() const { return Cache(std::make_unique<engine::Sequence>(impl_->clone())); }

namespace {

/// Number of entries that the first step will read from a KV head that holds `entries` of them.
double will_be_read(const policy::Method& method, const policy::Terms& terms, double entries) {
  if (!method.retrieves) return entries;
  if (!method.evicts()) return std::min<double>(entries, terms.budget);
  return terms.prompt.tokens <= terms.budget ? entries : method.decoding.read_share * entries;
}

}  // namespace

const CacheOptions& Cache::options() const { return impl_->options(); }

CacheStats Cache::stats() const {
  CacheStats stats;
  const int first = engine::first_global(impl_->hparams());
  stats.entries_min = impl_->lanes(first).length(0);
  double lanes = 0;
  double sum = 0;
  double entries = 0;
  for (int layer = 0; layer < impl_->layers(); ++layer) {
    const auto& of_layer = impl_->lanes(layer);
    const auto& shape = of_layer.shape();
    const int window = impl_->hparams().layer(layer).window;
    const int seen = window > 0 ? std::min(impl_->seen, window) : impl_->seen;
    stats.bytes_full +=
        as_size(seen) * 2 * as_size(shape.kv_heads) * cache::row_bytes(ElementType::f16, shape.head_dim);
    if (!impl_->counts(layer)) continue;
    for (int head = 0; head < shape.kv_heads; ++head) {
      const int length = of_layer.length(head);
      stats.entries_min = std::min(stats.entries_min, length);
      stats.entries_max = std::max(stats.entries_max, length);
      sum += length;
      entries += of_layer.entries(head);
    }
    lanes += shape.kv_heads;
  }
  stats.entries_per_head_mean = sum / lanes;
  stats.attended_per_head_mean = impl_->attended >= 0
                                     ? static_cast<double>(impl_->attended) / lanes
                                     : will_be_read(impl_->method(), impl_->layer(first).terms(), entries / lanes);
  stats.bytes_held = impl_->bytes_held();
  stats.tokens_seen = impl_->seen;
  return stats;
}

std::vector<std::vector<std::vector<std::int32_t>>> Cache::kept() const {
  std::vector<std::vector<std::vector<std::int32_t>>> out;
  for (int layer = 0; layer < impl_->layers(); ++layer) {
    auto& heads = out.emplace_back();
    const auto& lanes = impl_->lanes(layer);
    for (int head = 0; head < lanes.shape().kv_heads; ++head) {
      auto& positions = heads.emplace_back();
      for (int slot = 0; slot < lanes.length(head); ++slot) positions.push_back(lanes.position(head, slot));
      std::sort(positions.begin(), positions.end());
    }
  }
  return out;
}

}  // namespace winnow
