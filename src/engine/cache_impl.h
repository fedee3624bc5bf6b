// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "cache/growing_lanes.h"
#include "engine/layers.h"
#include "model/hparams.h"
#include "policy/views.h"
#include "winnow/session.h"

namespace winnow {

/// One sequence: its lanes and what its method needs to go on.
struct Cache::Impl {
  CacheOptions options;
  const model::Hparams* hparams = nullptr;
  MemoryAccount* account = nullptr;  ///< the session's; the lanes report to it
  cache::LaneSet lanes;
  int seen = 0;                         ///< tokens seen, and so the position of the next one
  std::vector<policy::Terms> terms;     ///< [layer]
  std::vector<std::vector<int>> limit;  ///< [layer][KV head] entries that a per-step method keeps

  /// Entries that the last step's queries read, over all layers and KV heads. Negative: no step yet.
  std::int64_t attended = -1;

  const policy::Method& method() const { return options.spec.method(); }
};

}  // namespace winnow
