// SPDX-License-Identifier: Apache-2.0
#include "policy/ordered_lane.h"

#include <algorithm>

namespace winnow::policy {

OrderedLane::OrderedLane(const cache::LayerLanes& lanes, int head, const Rope& rope)
    : lanes_(lanes), head_(head), rope_(rope), ranked_(lanes.is_unrotated(head) && lanes.shape().has_ranks()) {
  for (int slot = 0; slot < lanes.length(head); ++slot) entries_.push_back({lanes.position(head, slot), slot});
  std::ranges::sort(entries_, {}, &Entry::position);
}

void OrderedLane::key(int i, std::span<float> out) const {
  lanes_.key(head_, slot(i), out);
  if (lanes_.is_unrotated(head_)) rope_.shift(out.data(), effective(i));
}

}  // namespace winnow::policy
