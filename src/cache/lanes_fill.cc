// SPDX-License-Identifier: Apache-2.0
// How lanes are filled: from a prompt, and with what other lanes hold.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "cache/lanes.h"

namespace winnow::cache {

namespace {

/// Writes one stored row in another encoding.
void recode(const Rows& from, int index, ElementType type, std::byte* out) {
  if (from.type == type) {
    std::memcpy(out, from.row(index), row_bytes(type, from.dim));
    return;
  }
  std::vector<float> row(static_cast<std::size_t>(from.dim));
  decode_row(from.type, from.row(index), row);
  encode_row(type, row, out);
}

}  // namespace

void LayerLanes::commit(const KeepPlan& plan, const LayerScratch& scratch) {
  std::vector<std::int32_t> all;
  if (plan.keeps_all()) {
    all.resize(static_cast<std::size_t>(scratch.size()));
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
      commit_entry(static_cast<int>(head), slot, kept(head)[static_cast<std::size_t>(slot)], plan, scratch);
    }
    if (!plan.followers.empty()) commit_followers(static_cast<int>(head), plan, scratch);
    if (shape_.has_ranks()) rank(static_cast<int>(head));
  }
}

void LayerLanes::commit_followers(int head, const KeepPlan& plan, const LayerScratch& scratch) {
  const auto h = static_cast<std::size_t>(head);
  auto& followers = followers_[h];
  followers.reserve(static_cast<int>(plan.followers[h].size()));
  for (const auto& joined : plan.followers[h]) {
    followers.add({joined.founder, scratch.positions()[static_cast<std::size_t>(joined.row)], joined.scale});
  }
  for (int column = 0; column < shape_.state_columns && !plan.state.empty(); ++column) {
    const auto& all = plan.state[static_cast<std::size_t>(column)][h];
    std::copy(all.begin() + length(head), all.end(), followers.column(column).begin());
  }
}

void LayerLanes::commit_entry(int head, int slot, std::int32_t from, const KeepPlan& plan,
                              const LayerScratch& scratch) {
  const Entry to = entry(head, slot);
  const std::int32_t position = scratch.positions()[static_cast<std::size_t>(from)];
  const auto dim = static_cast<std::size_t>(shape_.head_dim);
  const auto merged = [&](const std::vector<std::vector<float>>& rows) {
    return std::span(rows[static_cast<std::size_t>(head)]).subspan(static_cast<std::size_t>(slot) * dim, dim);
  };
  const auto merges = [&](const std::vector<std::vector<float>>& rows) {
    return !rows.empty() && !rows[static_cast<std::size_t>(head)].empty();
  };
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
  for (std::size_t column = 0; column < static_cast<std::size_t>(shape_.state_columns); ++column) {
    const auto at = static_cast<std::size_t>(slot);
    to.state[column * to.state_step] =
        plan.state.empty() ? 0.0F : plan.state[column][static_cast<std::size_t>(head)][at];
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
    const auto h = static_cast<std::size_t>(head);
    before.push_back(slots_before(head, position));
    joined.block_first_[h + 1] = joined.block_first_[h] + before.back() + others.length(head);
    joined.followers_[h].reserve(followers(head).of(0, before.back()).count() + others.followers(head).count());
  }
  joined.block_ = make_store(*account_, shape_, joined.block_first_.back());
  for (int head = 0; head < shape_.kv_heads; ++head) {
    const auto h = static_cast<std::size_t>(head);
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
  length_[static_cast<std::size_t>(head)] += slots;
  for (int slot = 0; slot < slots; ++slot) copy_entry(from.entry(head, slot), entry(head, first + slot));
  const auto& all = from.followers(head);
  const auto some = all.of(0, slots);
  for (auto i = static_cast<std::size_t>(some.first); i < static_cast<std::size_t>(some.end); ++i) {
    const auto index =
        static_cast<std::size_t>(followers(head).add({first + all.slots()[i], all.positions()[i], all.scales()[i]}));
    for (int column = 0; column < shape_.state_columns; ++column)
      followers(head).column(column)[index] = all.column(column)[i];
  }
}

}  // namespace winnow::cache
