// SPDX-License-Identifier: Apache-2.0
#include "engine/past.h"

#include <algorithm>
#include <vector>

#include "base/as_size.h"

namespace winnow::engine {

namespace {

/// Slots of a lane with positions in [first, end), in order of position.
std::vector<int> slots_within(const cache::LayerLanes& lanes, int head, std::int32_t first, std::int32_t end) {
  std::vector<int> out;
  for (int slot = 0; slot < lanes.length(head); ++slot) {
    if (const auto position = lanes.position(head, slot); first <= position && position < end) out.push_back(slot);
  }
  std::ranges::sort(out, {}, [&](int slot) { return lanes.position(head, slot); });
  return out;
}

}  // namespace

PastSize past_size(ElementType type, const model::Hparams& hparams, int tokens, std::size_t rows) {
  PastSize out{tokens, static_cast<int>(std::min(rows, as_size(tokens))), 0};
  for (const auto& kind : hparams.kinds)
    out.bytes = std::max(out.bytes, cache::PastRows::bytes(type, kind.head_dim, rows));
  return out;
}

const cache::LayerLanes& Past::lanes(int layer) const {
  const auto& hparams = sequence_.hparams();
  if (windows_ == nullptr || hparams.layer(layer).window == 0) return sequence_.lanes(hparams.kv_layer(layer));
  return windows_->lanes[as_size(hparams.place_of[layer])];
}

std::vector<cache::LaneRun> Past::runs(int layer, int head) const {
  const auto& from = lanes(layer);
  std::vector<cache::LaneRun> out;
  if (const int window = sequence_.hparams().layer(layer).window; window > 0) {
    for (const int slot : slots_within(from, head, tokens_ - window + 1, tokens_))
      from.runs(head, {slot, slot + 1, 0}, out);
    return out;
  }
  const int slots = cache::slots_before(from, head, tokens_);
  const int entries = slots + from.merged_entries(head).of(0, slots).count();
  // With ranks as effective positions, the prompt's tokens have the ranks after the lane's.
  const bool ranked = from.is_unrotated(head) && from.shape().has_ranks();
  from.runs(head, {0, slots, ranked ? std::int64_t{entries} - tokens_ : 0}, out);
  return out;
}

int Past::rows(int layer, int head) const {
  int out = 0;
  for (const auto& run : runs(layer, head)) out += run.entries();
  return out;
}

void Past::read(int layer, cache::PastRows& out) const {
  const auto& spec = sequence_.hparams().layer(layer);
  std::vector<int> counts;
  for (int head = 0; head < spec.n_head_kv; ++head) counts.push_back(rows(layer, head));
  out.begin_layer(spec.head_dim, counts);
  for (int head = 0; head < spec.n_head_kv; ++head) {
    for (const auto& run : runs(layer, head)) out.add(head, run, spec.rope);
  }
}

PastSize Past::size(ElementType type) const {
  PastSize out{.tokens = tokens_};
  for (int layer = 0; layer < sequence_.layers(); ++layer) {
    const auto& spec = sequence_.hparams().layer(layer);
    std::size_t all = 0;
    for (int head = 0; head < spec.n_head_kv; ++head) {
      const int of_head = rows(layer, head);
      out.rows = std::max(out.rows, of_head);
      all += as_size(of_head);
    }
    out.bytes = std::max(out.bytes, cache::PastRows::bytes(type, spec.head_dim, all));
  }
  return out;
}

}  // namespace winnow::engine
