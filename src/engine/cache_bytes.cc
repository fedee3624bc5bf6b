// SPDX-License-Identifier: Apache-2.0
#include "engine/cache_bytes.h"

#include <algorithm>

#include "base/as_size.h"
#include "cache/lane_storage.h"
#include "cache/merged_entries.h"
#include "cache/summaries.h"
#include "engine/session_impl.h"

namespace winnow::engine {

std::vector<int> layer_entries(const CacheOptions& options, const model::Hparams& hparams, const PromptSize& size) {
  const auto budgets = layer_budgets(options, hparams, size);
  const int tokens = size.tokens;
  std::vector<int> out;
  for (int layer = 0; layer < hparams.n_kv_layer; ++layer) {
    const int heads = hparams.layer(layer).n_head_kv;
    const bool evicts = method_of(options, hparams.layer(layer)).evicts();
    out.push_back(evicts ? std::min(heads * tokens, budgets[layer].total(heads)) : heads * tokens);
  }
  return out;
}

std::size_t cache_bytes(const CacheOptions& options, const model::Hparams& hparams, const PromptSize& size) {
  const auto entries = layer_entries(options, hparams, size);
  const int tokens = size.tokens;
  std::size_t bytes = summary_bytes(options, hparams, 1);
  for (int layer = 0; layer < hparams.n_kv_layer; ++layer) {
    cache::LaneShape shape = lane_shape(options, hparams.layer(layer));
    const double evicted = shape.kv_heads * tokens - entries[layer];
    shape.merged_entries =
        std::min(shape.merged_entries, evicted / std::max(1, entries[layer]));  // only evicted entries can be merged
    bytes += as_size(entries[layer]) * entry_and_summary_bytes(shape);
  }
  return bytes;
}

std::size_t rows_kept(const CacheOptions& options, const model::Hparams& hparams, const PromptSize& size) {
  const auto entries = layer_entries(options, hparams, size);
  const double merged = 1 + options.spec.method().lanes.merged_entries;
  return static_cast<std::size_t>(merged * *std::ranges::max_element(entries));
}

namespace {

constexpr int kMergedTogether = 8;  ///< merged entries of a lane whose memory is allocated together

/// Bytes of the merged entries that lanes can gain in `more` tokens: each token evicts one entry, which is merged.
std::size_t merged_bytes(const CacheOptions& options, const model::Hparams& hparams, int budget, int more) {
  std::size_t bytes = 0;
  for (int layer = 0; layer < hparams.n_kv_layer; ++layer) {
    const auto shape = lane_shape(options, hparams.layer(layer));
    if (shape.merged_entries == 0) continue;
    const double most = std::min<double>(more, shape.merged_entries * budget) + kMergedTogether;
    bytes +=
        as_size(shape.kv_heads) * static_cast<std::size_t>(most) * cache::MergedEntries::bytes(shape.state_columns);
  }
  return bytes;
}

}  // namespace

/// Lanes grow by blocks, all of a layer at once. Lanes of methods that evict while decoding grow only up to their
/// budget and buffer.
std::size_t growth_bytes(const CacheOptions& options, const model::Hparams& hparams, int tokens, int more) {
  if (more == 0) return 0;
  constexpr auto kTailBlock = as_size(cache::LaneStorage::kTailBlock);
  const std::size_t summaries = summary_bytes(options, hparams, 1 + cache::Summaries::kTailRows);
  const std::size_t windows = window_growth_bytes(options, hparams, tokens, more, kExtendRows);
  if (options.spec.method().schedule != policy::Schedule::step)
    return (as_size(more) + kTailBlock) * entry_bytes(options, hparams) + windows + summaries;
  const int budget = budget_entries(options, hparams, tokens);
  const int entries = std::min(more, std::max(0, budget - tokens) + options.spec.method().decoding.buffer);
  return (as_size(entries) + kTailBlock) * entry_bytes(options, hparams) +
         merged_bytes(options, hparams, budget, more) + windows + summaries;
}

}  // namespace winnow::engine
