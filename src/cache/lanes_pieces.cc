// SPDX-License-Identifier: Apache-2.0
// What attention reads of a lane.
#include <algorithm>

#include "base/as_size.h"
#include "cache/lanes.h"

namespace winnow::cache {

void LayerLanes::pieces(int head, const AttendRange& range, std::vector<LanePiece>& out) const {
  const std::size_t before = out.size();
  const bool rotate_to = is_unrotated(head) && range.keys == AttendRange::Keys::in_place;
  for (int slot = range.begin; slot < range.end;) {
    const int count = std::min(together(head, slot), range.end - slot);
    const Entry at = entry(head, slot);
    LanePiece piece{{at.key, strides_.key, count, shape_.head_dim, shape_.type.key},
                    {at.value, strides_.value, count, shape_.head_dim, shape_.type.value},
                    range.query_shift};
    piece.first = slot;
    if (rotate_to) {
      piece.rotate_to = shape_.has_ranks() ? at.rank : at.position;
      piece.rotate_to_end = shape_.has_ranks() ? entries(head) : end_;
    }
    out.push_back(piece);
    slot += count;
  }
  if (merged_entries(head).count() > 0) add_merged_entries(head, before, out);
}

void LayerLanes::add_merged_entries(int head, std::size_t first_piece, std::vector<LanePiece>& out) const {
  const auto& all = merged_entries(head);
  for (std::size_t i = first_piece, end = out.size(); i < end; ++i) {
    LanePiece piece = out[i];
    const auto some = all.of(piece.first, piece.first + piece.keys.count);
    if (some.count() == 0) continue;
    const auto first = as_size(some.first);
    piece.first_slot = piece.first;
    piece.first = length(head) + some.first;
    piece.centres = &all.slots()[first];
    piece.scales = &all.scales()[first];
    piece.rotate_to = shape_.has_ranks() ? &all.ranks()[first] : &all.positions()[first];
    piece.merged_entries = some.count();
    out.push_back(piece);
  }
}

}  // namespace winnow::cache
