// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "base/as_size.h"
#include "engine/sequence.h"

namespace winnow {

namespace {

/// True if decoding only appends to the lanes, so that removing the last entries undoes it. With ranks as effective
/// positions, a lane that loses an entry un-rotates all its keys.
bool only_appends(const policy::Method& method) {
  return !method.changes_while_decoding() && method.lanes.summary_rows == 0 &&
         method.positions == policy::Positions::absolute;
}

void drop_from(cache::LayerLanes& lanes, int head, std::int32_t position) {
  while (lanes.length(head) > 0 && lanes.position(head, lanes.length(head) - 1) >= position)
    lanes.remove(head, lanes.length(head) - 1);
}

}  // namespace

CacheMark Cache::mark() const {
  CacheMark mark{impl_->seen, {}, {}};
  if (!only_appends(impl_->method())) mark.copy = clone();
  if (!mark.copy || impl_->method().schedule == policy::Schedule::once) mark.windows = impl_->copy_windows();
  return mark;
}

void Cache::go_back(CacheMark mark) {
  if (mark.copy) {
    *this = std::move(*mark.copy);
    return;
  }
  for (int layer = 0; layer < impl_->layers(); ++layer) {
    if (impl_->hparams().layer(layer).window > 0) continue;
    auto& lanes = impl_->lanes(layer);
    for (int head = 0; head < lanes.shape().kv_heads; ++head) drop_from(lanes, head, mark.tokens_seen);
    lanes.reserve(0);  // frees unused memory
  }
  if (mark.windows) impl_->put_back(*mark.windows);
  impl_->seen = mark.tokens_seen;
  impl_->tokens.resize(as_size(mark.tokens_seen));
  impl_->attended = -1;  // that step is undone
}

}  // namespace winnow
