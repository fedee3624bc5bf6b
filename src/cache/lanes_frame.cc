// SPDX-License-Identifier: Apache-2.0
// Where a lane's entries lie: rotated to their positions, or un-rotated with ranks.
#include <algorithm>
#include <numeric>

#include "base/as_size.h"
#include "cache/lanes.h"

namespace winnow::cache {

void LayerLanes::unrotate(int head) {
  if (is_unrotated(head)) return;
  unrotated_[head] = 1;
  std::vector<float> key(shape_.head_dim);
  for (int slot = 0; slot < length(head); ++slot) {
    const Entry at = entry(head, slot);
    decode_row(shape_.type.key, at.key, key);
    shape_.unrotates->shift(key.data(), -static_cast<std::int64_t>(*at.position));
    encode_row(shape_.type.key, key, at.key);
  }
  if (shape_.has_ranks()) rank(head);
}

std::vector<std::int32_t> LayerLanes::all_positions(int head) const {
  std::vector<std::int32_t> out;
  for (int slot = 0; slot < length(head); ++slot) out.push_back(position(head, slot));
  const auto more = merged_entries(head).positions();
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

void LayerLanes::rank(int head) {
  const auto positions = all_positions(head);
  std::vector<std::size_t> order(positions.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (!std::is_sorted(positions.begin(), positions.end())) {
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return positions[a] < positions[b]; });
  }
  const auto own = as_size(length(head));
  for (std::size_t r = 0; r < order.size(); ++r) {
    auto& rank =
        order[r] < own ? *entry(head, static_cast<int>(order[r])).rank : merged_entries(head).ranks()[order[r] - own];
    rank = static_cast<std::int32_t>(r);
  }
}

void LayerLanes::close_ranks(int head, std::int32_t leaving) {
  const auto close = [leaving](std::int32_t* ranks, int count) {
    for (int i = 0; i < count; ++i) ranks[i] -= ranks[i] > leaving ? 1 : 0;
  };
  for_each_span(head, [&](const LaneSpan& stretch) { close(stretch.ranks, stretch.count()); });
  close(merged_entries(head).ranks().data(), merged_entries(head).count());
}

}  // namespace winnow::cache
