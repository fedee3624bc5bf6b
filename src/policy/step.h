#pragma once

#include <vector>

#include "policy/method.h"

/// Pieces that per-step methods are made of.
namespace winnow::policy {

/// Mean attention of a KV head's query heads, by slot, [length].
void group_mean(const StepView& view, int kv_head, std::vector<float>& out);

/// Whether an entry may leave: it is neither one of the first `sinks` positions nor one of the `recent` last.
inline bool evictable(const StepView& view, std::int32_t position) {
  return position >= view.forced.sinks && position <= view.position - view.forced.recent;
}

/// Whether an entry of worth a at position p leaves before one of worth b at position q.
bool worse(float a, std::int32_t p, float b, std::int32_t q);

/// While a lane is longer than its limit, removes the evictable entry whose worth (worth(slot), a float) is the least; of equals, and of
/// those that are no number, the earliest.
template <class Worth>
void evict_down(const StepView& view, int kv_head, const Worth& worth) {
  auto& lanes = view.lanes;
  while (lanes.length(kv_head) > view.limit[static_cast<std::size_t>(kv_head)]) {
    int least = -1;
    for (int slot = 0; slot < lanes.length(kv_head); ++slot) {
      const auto position = lanes.position(kv_head, slot);
      if (!evictable(view, position)) continue;
      if (least < 0 || worse(worth(slot), position, worth(least), lanes.position(kv_head, least))) least = slot;
    }
    if (least < 0) return;
    lanes.remove(kv_head, least);
  }
}

}  // namespace winnow::policy
