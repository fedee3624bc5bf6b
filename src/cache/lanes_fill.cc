// SPDX-License-Identifier: Apache-2.0
// How lanes are filled: from a prompt, and with what other lanes hold.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/as_size.h"
#include "cache/lanes.h"

namespace winnow::cache {

namespace {

/// Writes one stored row in another encoding.
void recode(const Rows& from, int index, ElementType type, std::byte* out) {
  if (from.type == type) {
    std::memcpy(out, from.row(index), row_bytes(type, from.dim));
    return;
  }
  std::vector<float> row(from.dim);
  decode_row(from.type, from.row(index), row);
  encode_row(type, row, out);
}

}  // namespace

void LayerLanes::commit(const KeepPlan& plan, const LayerScratch& scratch) {
  std::vector<std::int32_t> all;
  if (plan.keeps_all()) {
    all.resize(scratch.size());
    std::iota(all.begin(), all.end(), 0);
  }
  const auto kept = [&](std::size_t head) -> const std::vector<std::int32_t>& {
    return plan.keeps_all() ? all : plan.heads[head];
  };
  for (std::size_t head = 0; head < length_.size(); ++head) {
    length_[head] = static_cast<int>(kept(head).size());
    block_first_[head + 1] = block_first_[head] + length_[head];
    unrotated_[head] = shape_.unrotates != nullptr && length_[head] < scratch.size() ? 1 : 0;
  }
  block_ = make_store(*account_, shape_, block_first_.back());
  end_ = scratch.positions().empty() ? 0 : scratch.positions().back() + 1;
  for (std::size_t head = 0; head < length_.size(); ++head) {
    for (int slot = 0; slot < length_[head]; ++slot) {
      commit_entry(static_cast<int>(head), slot, kept(head)[slot], plan, scratch);
    }
    if (!plan.merged_entries.empty()) commit_merged_entries(static_cast<int>(head), plan, scratch);
    if (shape_.has_ranks()) rank(static_cast<int>(head));
  }
}

void LayerLanes::commit_merged_entries(int head, const KeepPlan& plan, const LayerScratch& scratch) {
  const auto h = as_size(head);
  auto& merged_entries = merged_entries_[h];
  merged_entries.reserve(static_cast<int>(plan.merged_entries[h].size()));
  for (const auto& joined : plan.merged_entries[h]) {
    merged_entries.add({joined.centre, scratch.positions()[joined.row], joined.scale});
  }
  for (int column = 0; column < shape_.state_columns && !plan.state.empty(); ++column) {
    const auto& all = plan.state[column][h];
    std::copy(all.begin() + length(head), all.end(), merged_entries.column(column).begin());
  }
}

void LayerLanes::commit_entry(int head, int slot, std::int32_t from, const KeepPlan& plan,
                              const LayerScratch& scratch) {
  const Entry to = entry(head, slot);
  const std::int32_t position = scratch.positions()[from];
  const auto dim = as_size(shape_.head_dim);
  const auto merged = [&](const std::vector<std::vector<float>>& rows) {
    return std::span(rows[head]).subspan(as_size(slot) * dim, dim);
  };
  const auto merges = [&](const std::vector<std::vector<float>>& rows) { return !rows.empty() && !rows[head].empty(); };
  if (merges(plan.keys)) {
    encode_row(shape_.type.key, merged(plan.keys), to.key);
  } else if (is_unrotated(head)) {
    std::vector<float> key(dim);
    decode_row(scratch.type(), scratch.keys(head).row(from), key);
    shape_.unrotates->shift(key.data(), -static_cast<std::int64_t>(position));
    encode_row(shape_.type.key, key, to.key);
  } else {
    recode(scratch.keys(head), from, shape_.type.key, to.key);
  }
  if (!merges(plan.values)) {
    recode(scratch.values(head), from, shape_.type.value, to.value);
  } else {
    encode_row(shape_.type.value, merged(plan.values), to.value);
  }
  *to.position = position;
  for (std::size_t column = 0; column < as_size(shape_.state_columns); ++column) {
    const auto at = as_size(slot);
    to.state[column * to.state_step] = plan.state.empty() ? 0.0F : plan.state[column][head][at];
  }
}

int LayerLanes::slots_before(int head, std::int32_t position) const {
  int slots = length(head);
  while (slots > 0 && this->position(head, slots - 1) >= position) --slots;
  return slots;
}

void LayerLanes::put_from(std::int32_t position, LayerLanes&& others) {
  LayerLanes joined(*account_, shape_);
  std::vector<int> before;
  for (int head = 0; head < shape_.kv_heads; ++head) {
    const auto h = as_size(head);
    before.push_back(slots_before(head, position));
    joined.block_first_[h + 1] = joined.block_first_[h] + before.back() + others.length(head);
    joined.merged_entries_[h].reserve(merged_entries(head).of(0, before.back()).count() +
                                      others.merged_entries(head).count());
  }
  joined.block_ = make_store(*account_, shape_, joined.block_first_.back());
  for (int head = 0; head < shape_.kv_heads; ++head) {
    const auto h = as_size(head);
    if (is_unrotated(head) || others.is_unrotated(head)) {
      unrotate(head);
      others.unrotate(head);
    }
    joined.unrotated_[h] = unrotated_[h];
    joined.add_slots(head, *this, before[h]);
    joined.add_slots(head, others, others.length(head));
    if (shape_.has_ranks()) joined.rank(head);
  }
  joined.end_ = std::max(end_, others.end_);
  joined.summaries_ = std::move(summaries_);
  *this = std::move(joined);
}

void LayerLanes::add_slots(int head, const LayerLanes& from, int slots) {
  const int first = length(head);
  length_[head] += slots;
  for (int slot = 0; slot < slots; ++slot) copy_entry(from.entry(head, slot), entry(head, first + slot));
  const auto& all = from.merged_entries(head);
  const auto some = all.of(0, slots);
  for (auto i = as_size(some.first); i < as_size(some.end); ++i) {
    const auto index = as_size(merged_entries(head).add({first + all.slots()[i], all.positions()[i], all.scales()[i]}));
    for (int column = 0; column < shape_.state_columns; ++column)
      merged_entries(head).column(column)[index] = all.column(column)[i];
  }
}

}  // namespace winnow::cache
