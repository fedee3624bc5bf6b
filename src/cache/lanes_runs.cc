// SPDX-License-Identifier: Apache-2.0
// Reading lanes for attention.
#include "base/as_size.h"
#include "cache/element.h"
#include "cache/lanes.h"

namespace winnow::cache {

void LayerLanes::runs(int head, const AttendRange& range, std::vector<LaneRun>& out) const {
  const std::size_t before = out.size();
  const LaneShape& form = shape();
  const bool rotates = is_unrotated(head) && range.keys == AttendRange::Keys::in_place;
  for (int slot = range.begin; slot < range.end;) {
    const int count = storage().run(head, slot, range.end);
    const StoredEntry at = entry(head, slot);
    LaneRun run{{at.key, row_bytes(form.type.key, form.head_dim), count, form.head_dim, form.type.key},
                {at.value, row_bytes(form.type.value, form.head_dim), count, form.head_dim, form.type.value},
                range.query_shift};
    run.first = slot;
    run.storage = &storage();
    if (rotates) {
      run.rotate_to = form.has_ranks() ? at.rank : at.position;
      run.rotate_to_end = form.has_ranks() ? entries(head) : contents_.end;
    }
    out.push_back(run);
    slot += count;
  }
  if (merged_entries(head).count() > 0) add_merged_entries(head, before, out);
}

void LayerLanes::add_merged_entries(int head, std::size_t first_run, std::vector<LaneRun>& out) const {
  const auto& all = merged_entries(head);
  for (std::size_t i = first_run, end = out.size(); i < end; ++i) {
    LaneRun run = out[i];
    const auto some = all.of(run.first, run.first + run.keys.count);
    if (some.count() == 0) continue;
    const auto first = as_size(some.first);
    run.first_slot = run.first;
    run.first = length(head) + some.first;
    run.centres = &all.slots()[first];
    run.scales = &all.scales()[first];
    run.rotate_to = shape().has_ranks() ? &all.ranks()[first] : &all.positions()[first];
    run.merged_entries = some.count();
    out.push_back(run);
  }
}

}  // namespace winnow::cache
