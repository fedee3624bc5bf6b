// SPDX-License-Identifier: Apache-2.0
// Reading lanes for attention.
#include "base/as_size.h"
#include "cache/element.h"
#include "cache/lanes.h"

namespace winnow::cache {

void LayerLanes::pieces(int head, const AttendRange& range, std::vector<LanePiece>& out) const {
  const std::size_t before = out.size();
  const LaneShape& form = shape();
  const bool rotates = is_unrotated(head) && range.keys == AttendRange::Keys::in_place;
  for (int slot = range.begin; slot < range.end;) {
    const int count = storage().run(head, slot, range.end);
    const StoredEntry at = entry(head, slot);
    LanePiece piece{{at.key, row_bytes(form.type.key, form.head_dim), count, form.head_dim, form.type.key},
                    {at.value, row_bytes(form.type.value, form.head_dim), count, form.head_dim, form.type.value},
                    range.query_shift};
    piece.first = slot;
    if (rotates) {
      piece.rotate_to = form.has_ranks() ? at.rank : at.position;
      piece.rotate_to_end = form.has_ranks() ? entries(head) : contents_.end;
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
    piece.rotate_to = shape().has_ranks() ? &all.ranks()[first] : &all.positions()[first];
    piece.merged_entries = some.count();
    out.push_back(piece);
  }
}

}  // namespace winnow::cache
