// SPDX-License-Identifier: Apache-2.0
// Positions of a lane's entries, and rotation of its keys.
#include <algorithm>
#include <numeric>

#include "base/as_size.h"
#include "cache/element.h"
#include "cache/lanes.h"

namespace winnow::cache {

std::vector<std::int32_t> LaneContents::positions(int head) const {
  std::vector<std::int32_t> out;
  storage.for_each_run(
      head, [&out](const StoredEntry& at, int count) { out.insert(out.end(), at.position, at.position + count); });
  const auto more = merged_entries[head].positions();
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

void LaneContents::store_unrotated(std::span<float> key, std::int32_t position, std::byte* to) const {
  storage.shape().unrotates->shift(key.data(), -static_cast<std::int64_t>(position));
  encode_row(storage.shape().type.key, key, to);
}

void LayerLanes::unrotate(int head) {
  if (is_unrotated(head)) return;
  contents_.unrotated[head] = 1;
  std::vector<float> key(shape().head_dim);
  for (int slot = 0; slot < length(head); ++slot) {
    const StoredEntry at = entry(head, slot);
    decode_row(shape().type.key, at.key, key);
    contents_.store_unrotated(key, *at.position, contents_.storage.change(head, slot).key);
  }
  if (shape().has_ranks()) rank(head);
}

void LayerLanes::rank(int head) {
  const auto positions = contents_.positions(head);
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

void LayerLanes::close_ranks(int head, std::int32_t evicted) {
  const auto close = [evicted](std::int32_t* ranks, int count) {
    for (int i = 0; i < count; ++i) ranks[i] -= ranks[i] > evicted ? 1 : 0;
  };
  contents_.storage.for_each_run(head, [&close](const StoredEntry& at, int count) { close(at.rank, count); });
  close(merged_entries(head).ranks().data(), merged_entries(head).count());
}

}  // namespace winnow::cache
