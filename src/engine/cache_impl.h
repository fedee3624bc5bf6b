#pragma once

#include <cstdint>
#include <vector>

#include "cache/lanes.h"
#include "model/hparams.h"
#include "policy/method.h"
#include "winnow/session.h"

namespace winnow {

/// One sequence: its lanes and what its method needs to go on.
struct Cache::Impl {
  CacheOptions options;
  const model::Hparams* hparams = nullptr;
  MemoryAccount* account = nullptr;  ///< the session's; the lanes report to it
  cache::LaneSet lanes;
  int seen = 0;  ///< tokens seen, and so the position of the next one
  policy::Terms terms;
  std::vector<std::vector<int>> limit;  ///< [layer][KV head] entries that a per-step method keeps

  /// Entries that the last step's queries read, over all layers and KV heads. Negative: no step yet.
  std::int64_t attended = -1;

  const policy::Method& method() const { return options.spec.method(); }
};

namespace engine {

/// The shape of the lanes that `options` asks for.
cache::LaneShape lane_shape(const CacheOptions& options, const model::Hparams& hparams);

/// Entries per KV head that `options` allows after `tokens` tokens; `tokens` for methods without a budget.
int budget_entries(const CacheOptions& options, const model::Hparams& hparams, int tokens);

/// Entries per KV head that are kept after `tokens` tokens: the budget's, or all.
int kept_entries(const CacheOptions& options, const model::Hparams& hparams, int tokens);

}  // namespace engine
}  // namespace winnow
