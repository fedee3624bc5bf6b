#include "cache/lanes.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

namespace winnow::cache {

namespace {

Buffer copy(MemoryAccount& account, const Buffer& from, const char* purpose) {
  Buffer to(account, from.size(), purpose);
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
  return to;
}

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

/// x = max(x, y), beside other threads that do the same.
void raise(std::int32_t& x, std::int32_t y) {
  const std::atomic_ref shared(x);
  std::int32_t seen = shared.load(std::memory_order_relaxed);
  while (seen < y && !shared.compare_exchange_weak(seen, y, std::memory_order_relaxed)) continue;
}

}  // namespace

std::size_t entry_bytes(const LaneShape& shape) {
  return row_bytes(shape.type.key, shape.head_dim) + row_bytes(shape.type.value, shape.head_dim) +
         (shape.has_ranks() ? 2 : 1) * sizeof(std::int32_t) + static_cast<std::size_t>(shape.state_columns) * sizeof(float) +
         static_cast<std::size_t>(std::ceil(shape.followers * static_cast<double>(Followers::bytes(shape.state_columns))));
}

LayerLanes::Store LayerLanes::make_store(MemoryAccount& account, const LaneShape& shape, int entries) {
  const auto n = static_cast<std::size_t>(entries);
  return {Buffer(account, n * row_bytes(shape.type.key, shape.head_dim), "kept keys"),
          Buffer(account, n * row_bytes(shape.type.value, shape.head_dim), "kept values"),
          Buffer(account, n * sizeof(std::int32_t), "positions of kept entries"),
          Buffer(account, shape.has_ranks() ? n * sizeof(std::int32_t) : 0, "ranks of kept entries"),
          Buffer(account, n * static_cast<std::size_t>(shape.state_columns) * sizeof(float), "state of kept entries")};
}

LayerLanes::Store LayerLanes::copy_store(MemoryAccount& account, const Store& from) {
  return {copy(account, from.keys, "kept keys"), copy(account, from.values, "kept values"),
          copy(account, from.positions, "positions of kept entries"), copy(account, from.ranks, "ranks of kept entries"),
          copy(account, from.state, "state of kept entries")};
}

LayerLanes::Entry LayerLanes::Store::entry(const Strides& strides, int first, int capacity, int index) const {
  // A store owns its memory; its constness is that of the lanes around it.
  const auto at = static_cast<std::size_t>(first + index);
  const auto integers = [at](const Buffer& buffer) {
    return buffer.empty() ? nullptr : const_cast<std::int32_t*>(buffer.as<std::int32_t>().data()) + at;
  };
  auto* const state_at = const_cast<float*>(state.as<float>().data());
  return {const_cast<std::byte*>(keys.data()) + at * strides.key,
          const_cast<std::byte*>(values.data()) + at * strides.value,
          integers(positions),
          integers(ranks),
          state_at == nullptr ? nullptr : state_at + static_cast<std::ptrdiff_t>(first) * strides.columns + index,
          static_cast<std::size_t>(capacity)};
}

LayerLanes::LayerLanes(MemoryAccount& account, const LaneShape& shape)
    : account_(&account),
      shape_(shape),
      strides_{row_bytes(shape.type.key, shape.head_dim), row_bytes(shape.type.value, shape.head_dim), shape.state_columns},
      block_first_(static_cast<std::size_t>(shape.kv_heads) + 1, 0),
      unrotated_(static_cast<std::size_t>(shape.kv_heads), 0),
      length_(static_cast<std::size_t>(shape.kv_heads), 0) {
  for (int head = 0; head < shape.kv_heads; ++head) followers_.emplace_back(account, shape.state_columns);
}

LayerLanes LayerLanes::clone(MemoryAccount& account) const {
  LayerLanes out(account, shape_);
  out.block_ = copy_store(account, block_);
  out.block_first_ = block_first_;
  out.length_ = length_;
  out.unrotated_ = unrotated_;
  out.end_ = end_;
  for (std::size_t head = 0; head < followers_.size(); ++head) out.followers_[head] = followers_[head].clone(account);
  for (const auto& page : pages_) out.pages_.push_back(copy_store(account, page));
  for (const auto& some : summaries_) out.summaries_.push_back(copy(account, some, "summaries of blocks"));
  return out;
}

void LayerLanes::commit(const KeepPlan& plan, const LayerScratch& scratch) {
  std::vector<std::int32_t> all;
  if (plan.keeps_all()) {
    all.resize(static_cast<std::size_t>(scratch.size()));
    std::iota(all.begin(), all.end(), 0);
  }
  const auto kept = [&](std::size_t head) -> const std::vector<std::int32_t>& { return plan.keeps_all() ? all : plan.heads[head]; };
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

void LayerLanes::commit_entry(int head, int slot, std::int32_t from, const KeepPlan& plan, const LayerScratch& scratch) {
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
    to.state[column * to.state_step] = plan.state.empty() ? 0.0F : plan.state[column][static_cast<std::size_t>(head)][at];
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
    const auto index = static_cast<std::size_t>(followers(head).add({first + all.slots()[i], all.positions()[i], all.scales()[i]}));
    for (int column = 0; column < shape_.state_columns; ++column) followers(head).column(column)[index] = all.column(column)[i];
  }
}

void LayerLanes::reserve(int count) {
  int longest = 0;
  for (std::size_t head = 0; head < length_.size(); ++head) {
    longest = std::max(longest, length_[head] + count - (block_first_[head + 1] - block_first_[head]));
  }
  const auto wanted = static_cast<std::size_t>((longest + kPage - 1) / kPage);
  while (pages_.size() > wanted) pages_.pop_back();
  while (pages_.size() < wanted) pages_.push_back(make_store(*account_, shape_, shape_.kv_heads * kPage));
}

LayerLanes::Entry LayerLanes::entry(int head, int slot) const {
  const int first = block_first_[static_cast<std::size_t>(head)];
  const int in_block = block_first_[static_cast<std::size_t>(head) + 1] - first;
  if (slot < in_block) return block_.entry(strides_, first, in_block, slot);
  const int tail = slot - in_block;
  return pages_[static_cast<std::size_t>(tail / kPage)].entry(strides_, head * kPage, kPage, tail % kPage);
}

void LayerLanes::write(int head, int slot, std::int32_t position, std::span<const float> key, std::span<const float> value) {
  const Entry to = entry(head, slot);
  if (is_unrotated(head)) {
    std::vector<float> unrotated(key.begin(), key.end());
    shape_.unrotates->shift(unrotated.data(), -static_cast<std::int64_t>(position));
    encode_row(shape_.type.key, unrotated, to.key);
  } else {
    encode_row(shape_.type.key, key, to.key);
  }
  encode_row(shape_.type.value, value, to.value);
  *to.position = position;
  if (to.rank != nullptr) *to.rank = entries(head) - 1;
  raise(end_, position + 1);
  for (int column = 0; column < shape_.state_columns; ++column) to.state[static_cast<std::size_t>(column) * to.state_step] = 0.0F;
}

void LayerLanes::append(int head, std::int32_t position, std::span<const float> key, std::span<const float> value) {
  const int slot = length_[static_cast<std::size_t>(head)]++;
  write(head, slot, position, key, value);
}

void LayerLanes::replace(int head, int slot, std::int32_t position, std::span<const float> key, std::span<const float> value) {
  if (shape_.unrotates != nullptr) unrotate(head);
  if (const auto* const rank = entry(head, slot).rank; rank != nullptr) close_ranks(head, *rank);
  write(head, slot, position, key, value);
}

void LayerLanes::remove(int head, int slot) {
  if (shape_.unrotates != nullptr) unrotate(head);
  for (auto some = followers(head).of(slot); some.count() > 0; --some.end) remove_follower(head, some.end - 1);
  if (const auto* const rank = entry(head, slot).rank; rank != nullptr) close_ranks(head, *rank);
  fill_slot(head, slot);
}

void LayerLanes::fill_slot(int head, int slot) {
  const int last = --length_[static_cast<std::size_t>(head)];
  if (slot != last) {
    copy_entry(entry(head, last), entry(head, slot));
    followers(head).move(last, slot);
  }
}

void LayerLanes::copy_entry(const Entry& from, const Entry& to) const {
  std::memcpy(to.key, from.key, strides_.key);
  std::memcpy(to.value, from.value, strides_.value);
  *to.position = *from.position;
  if (to.rank != nullptr) *to.rank = *from.rank;
  for (std::size_t column = 0; column < static_cast<std::size_t>(shape_.state_columns); ++column) {
    to.state[column * to.state_step] = from.state[column * from.state_step];
  }
}

void LayerLanes::reserve_followers(int count) {
  for (auto& followers : followers_) followers.reserve(count);
}

void LayerLanes::follow(int head, int slot, int founder, float scale) {
  auto& all = followers(head);
  const auto own = all.of(slot);
  for (int i = own.first; i < own.end; ++i) all.scales()[static_cast<std::size_t>(i)] *= scale;
  all.move(slot, founder);
  const Entry from = entry(head, slot);
  const auto index = static_cast<std::size_t>(all.add({founder, *from.position, scale}));
  if (from.rank != nullptr) all.ranks()[index] = *from.rank;
  for (int column = 0; column < shape_.state_columns; ++column) {
    all.column(column)[index] = from.state[static_cast<std::size_t>(column) * from.state_step];
  }
  fill_slot(head, slot);
}

void LayerLanes::remove_follower(int head, int index) {
  auto& all = followers(head);
  if (shape_.has_ranks()) close_ranks(head, all.ranks()[static_cast<std::size_t>(index)]);
  all.erase({index, index + 1});
}

void LayerLanes::reserve_summaries(int blocks) {
  const auto floats =
      static_cast<std::size_t>(kSummaries) * static_cast<std::size_t>(shape_.kv_heads) * static_cast<std::size_t>(shape_.summary_floats);
  while (static_cast<int>(summaries_.size()) * kSummaries < blocks) {
    summaries_.emplace_back(*account_, floats * sizeof(float), "summaries of blocks");
    std::fill_n(summaries_.back().as<float>().data(), floats, 0.0F);  // a block that is never summarised is saved too
  }
}

std::span<float> LayerLanes::summary(int head, int block) {
  const auto floats = static_cast<std::size_t>(shape_.summary_floats);
  const auto index = static_cast<std::size_t>(head) * kSummaries + static_cast<std::size_t>(block % kSummaries);
  return summaries_[static_cast<std::size_t>(block / kSummaries)].as<float>().subspan(index * floats, floats);
}

std::span<const float> LayerLanes::summary(int head, int block) const { return const_cast<LayerLanes*>(this)->summary(head, block); }

Rows LayerLanes::summaries(int head, int block, int end) const {
  const int count = std::min(end - block, kSummaries - block % kSummaries);
  return {reinterpret_cast<const std::byte*>(summary(head, block).data()), static_cast<std::size_t>(shape_.summary_floats) * sizeof(float),
          count, shape_.summary_floats, ElementType::f32};
}

void LayerLanes::unrotate(int head) {
  if (is_unrotated(head)) return;
  unrotated_[static_cast<std::size_t>(head)] = 1;
  std::vector<float> key(static_cast<std::size_t>(shape_.head_dim));
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
  const auto more = followers(head).positions();
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
  const auto own = static_cast<std::size_t>(length(head));
  for (std::size_t r = 0; r < order.size(); ++r) {
    auto& rank = order[r] < own ? *entry(head, static_cast<int>(order[r])).rank : followers(head).ranks()[order[r] - own];
    rank = static_cast<std::int32_t>(r);
  }
}

void LayerLanes::close_ranks(int head, std::int32_t leaving) {
  const auto close = [leaving](std::int32_t* ranks, int count) {
    for (int i = 0; i < count; ++i) ranks[i] -= ranks[i] > leaving ? 1 : 0;
  };
  for_each_stretch(head, [&](const LaneStretch& stretch) { close(stretch.ranks, stretch.count()); });
  close(followers(head).ranks().data(), followers(head).count());
}

void LayerLanes::overwrite(int head, int slot, std::span<const float> key, std::span<const float> value) {
  const Entry at = entry(head, slot);
  encode_row(shape_.type.key, key, at.key);
  encode_row(shape_.type.value, value, at.value);
}

void LayerLanes::key(int head, int slot, std::span<float> out) const { decode_row(shape_.type.key, entry(head, slot).key, out); }

void LayerLanes::add_to_values(int head, std::span<const int> slots, std::span<const float> addend) {
  std::vector<float> value(addend.size());
  for (const int slot : slots) {
    std::byte* const at = entry(head, slot).value;
    decode_row(shape_.type.value, at, value);
    for (std::size_t i = 0; i < value.size(); ++i) value[i] += addend[i];
    encode_row(shape_.type.value, value, at);
  }
}

void LayerLanes::value(int head, int slot, std::span<float> out) const { decode_row(shape_.type.value, entry(head, slot).value, out); }

int LayerLanes::length(int head) const { return length_[static_cast<std::size_t>(head)]; }

std::int32_t LayerLanes::position(int head, int slot) const { return *entry(head, slot).position; }

float& LayerLanes::state(int head, int column, int slot) {
  const Entry at = entry(head, slot);
  return at.state[static_cast<std::size_t>(column) * at.state_step];
}

float LayerLanes::state(int head, int column, int slot) const { return const_cast<LayerLanes*>(this)->state(head, column, slot); }

int LayerLanes::together(int head, int slot) const {
  const int in_block = block_first_[static_cast<std::size_t>(head) + 1] - block_first_[static_cast<std::size_t>(head)];
  return slot < in_block ? in_block - slot : kPage - (slot - in_block) % kPage;
}

void LayerLanes::pieces(int head, const AttendRange& range, std::vector<LanePiece>& out) const {
  const std::size_t before = out.size();
  const bool turns = is_unrotated(head) && range.keys == AttendRange::Keys::in_place;
  for (int slot = range.begin; slot < range.end;) {
    const int count = std::min(together(head, slot), range.end - slot);
    const Entry at = entry(head, slot);
    LanePiece piece{{at.key, strides_.key, count, shape_.head_dim, shape_.type.key},
                    {at.value, strides_.value, count, shape_.head_dim, shape_.type.value},
                    range.query_shift};
    piece.first = slot;
    if (turns) {
      piece.turns = shape_.has_ranks() ? at.rank : at.position;
      piece.turns_end = shape_.has_ranks() ? entries(head) : end_;
    }
    out.push_back(piece);
    slot += count;
  }
  if (followers(head).count() > 0) add_followers(head, before, out);
}

void LayerLanes::add_followers(int head, std::size_t first_piece, std::vector<LanePiece>& out) const {
  const auto& all = followers(head);
  for (std::size_t i = first_piece, end = out.size(); i < end; ++i) {
    LanePiece piece = out[i];
    const auto some = all.of(piece.first, piece.first + piece.keys.count);
    if (some.count() == 0) continue;
    const auto first = static_cast<std::size_t>(some.first);
    piece.first_slot = piece.first;
    piece.first = length(head) + some.first;
    piece.founders = &all.slots()[first];
    piece.scales = &all.scales()[first];
    piece.turns = shape_.has_ranks() ? &all.ranks()[first] : &all.positions()[first];
    piece.followers = some.count();
    out.push_back(piece);
  }
}

LaneSet::LaneSet(const LaneShape& shape, int layers, MemoryAccount* parent) : account_(std::make_unique<MemoryAccount>(parent)) {
  layers_.reserve(static_cast<std::size_t>(layers));
  for (int layer = 0; layer < layers; ++layer) layers_.emplace_back(*account_, shape);
}

LaneSet LaneSet::clone(MemoryAccount* parent) const {
  LaneSet out(layers_.front().shape(), 0, parent);
  for (const auto& layer : layers_) out.layers_.push_back(layer.clone(*out.account_));
  return out;
}

}  // namespace winnow::cache
