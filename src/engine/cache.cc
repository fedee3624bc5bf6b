#include <algorithm>

#include "engine/cache_impl.h"

namespace winnow {

namespace engine {

cache::LaneShape lane_shape(const CacheOptions& options, const model::Hparams& hparams) {
  const auto& method = options.spec.method();
  return {hparams.n_head_kv,
          hparams.head_dim,
          options.kv_type,
          static_cast<int>(method.columns.size()),
          method.positions == policy::Positions::text ? nullptr : &hparams.rope,
          method.positions == policy::Positions::rank ? cache::Lying::at_rank : cache::Lying::at_position,
          method.summary_rows * hparams.head_dim,
          method.followers};
}

int kept_entries(const CacheOptions& options, const model::Hparams& hparams, int tokens) {
  return options.spec.method().evicts() ? std::min(tokens, budget_entries(options, hparams, tokens)) : tokens;
}

int budget_entries(const CacheOptions& options, const model::Hparams& hparams, int tokens) {
  if (!options.spec.method().needs_budget()) return tokens;
  return options.budget->entries(tokens, cache::entry_bytes(lane_shape(options, hparams)), hparams.n_layer,
                                 hparams.n_head_kv);
}

}  // namespace engine

Cache::Cache(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Cache::Cache(Cache&&) noexcept = default;
Cache& Cache::operator=(Cache&&) noexcept = default;
Cache::~Cache() = default;

Cache Cache::clone() const {
  return Cache(
      std::make_unique<Impl>(Impl{impl_->options, impl_->hparams, impl_->account, impl_->lanes.clone(impl_->account),
                                  impl_->seen, impl_->terms, impl_->limit, impl_->attended}));
}

const CacheOptions& Cache::options() const { return impl_->options; }

CacheStats Cache::stats() const {
  const auto& h = *impl_->hparams;
  CacheStats stats;
  stats.entries_min = impl_->lanes.layer(0).length(0);
  double sum = 0;
  double entries = 0;
  for (int layer = 0; layer < h.n_layer; ++layer) {
    for (int head = 0; head < h.n_head_kv; ++head) {
      const int length = impl_->lanes.layer(layer).length(head);
      stats.entries_min = std::min(stats.entries_min, length);
      stats.entries_max = std::max(stats.entries_max, length);
      sum += length;
      entries += impl_->lanes.layer(layer).entries(head);
    }
  }
  const double lanes = h.n_layer * h.n_head_kv;
  stats.entries_per_head_mean = sum / lanes;
  // Before the first step: what it will read.
  const double budget = impl_->method().retrieves ? impl_->terms.budget : entries / lanes;
  stats.attended_per_head_mean =
      impl_->attended >= 0 ? static_cast<double>(impl_->attended) / lanes : std::min(entries / lanes, budget);
  stats.bytes_held = impl_->lanes.bytes_held();
  stats.tokens_seen = impl_->seen;
  const auto row = cache::row_bytes(ElementType::f16, h.head_dim);
  stats.bytes_full = 2 * row * static_cast<std::size_t>(h.n_layer) * static_cast<std::size_t>(h.n_head_kv) *
                     static_cast<std::size_t>(impl_->seen);
  return stats;
}

std::vector<std::vector<std::vector<std::int32_t>>> Cache::kept() const {
  std::vector<std::vector<std::vector<std::int32_t>>> out;
  for (int layer = 0; layer < impl_->hparams->n_layer; ++layer) {
    auto& heads = out.emplace_back();
    const auto& lanes = impl_->lanes.layer(layer);
    for (int head = 0; head < impl_->hparams->n_head_kv; ++head) {
      auto& positions = heads.emplace_back();
      for (int slot = 0; slot < lanes.length(head); ++slot) positions.push_back(lanes.position(head, slot));
      std::sort(positions.begin(), positions.end());
    }
  }
  return out;
}

}  // namespace winnow
