#include "cache/lanes.h"

#include <algorithm>
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

}  // namespace

std::size_t entry_bytes(const LaneShape& shape) {
  return row_bytes(shape.type.key, shape.head_dim) + row_bytes(shape.type.value, shape.head_dim) +
         (shape.by_rank == nullptr ? 1 : 2) * sizeof(std::int32_t) + static_cast<std::size_t>(shape.state_columns) * sizeof(float);
}

LayerLanes::Store LayerLanes::make_store(MemoryAccount& account, const LaneShape& shape, int entries) {
  const auto n = static_cast<std::size_t>(entries);
  return {Buffer(account, n * row_bytes(shape.type.key, shape.head_dim), "kept keys"),
          Buffer(account, n * row_bytes(shape.type.value, shape.head_dim), "kept values"),
          Buffer(account, n * sizeof(std::int32_t), "positions of kept entries"),
          Buffer(account, shape.by_rank == nullptr ? 0 : n * sizeof(std::int32_t), "ranks of kept entries"),
          Buffer(account, n * static_cast<std::size_t>(shape.state_columns) * sizeof(float), "state of kept entries")};
}

LayerLanes::Store LayerLanes::copy_store(MemoryAccount& account, const Store& from) {
  return {copy(account, from.keys, "kept keys"), copy(account, from.values, "kept values"),
          copy(account, from.positions, "positions of kept entries"), copy(account, from.ranks, "ranks of kept entries"),
          copy(account, from.state, "state of kept entries")};
}

LayerLanes::Entry LayerLanes::Store::entry(const LaneShape& shape, int first, int capacity, int index) const {
  // A store owns its memory; its constness is that of the lanes around it.
  const auto at = static_cast<std::size_t>(first + index);
  const auto integers = [at](const Buffer& buffer) {
    return buffer.empty() ? nullptr : const_cast<std::int32_t*>(buffer.as<std::int32_t>().data()) + at;
  };
  auto* const state_at = const_cast<float*>(state.as<float>().data());
  return {const_cast<std::byte*>(keys.data()) + at * row_bytes(shape.type.key, shape.head_dim),
          const_cast<std::byte*>(values.data()) + at * row_bytes(shape.type.value, shape.head_dim),
          integers(positions),
          integers(ranks),
          state_at == nullptr ? nullptr : state_at + static_cast<std::ptrdiff_t>(first) * shape.state_columns + index,
          static_cast<std::size_t>(capacity)};
}

LayerLanes::LayerLanes(MemoryAccount& account, const LaneShape& shape)
    : account_(&account),
      shape_(shape),
      block_first_(static_cast<std::size_t>(shape.kv_heads) + 1, 0),
      ranked_(static_cast<std::size_t>(shape.kv_heads), 0),
      length_(static_cast<std::size_t>(shape.kv_heads), 0) {}

LayerLanes LayerLanes::clone(MemoryAccount& account) const {
  LayerLanes out(account, shape_);
  out.block_ = copy_store(account, block_);
  out.block_first_ = block_first_;
  out.length_ = length_;
  out.ranked_ = ranked_;
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
    ranked_[head] = shape_.by_rank != nullptr && length_[head] < scratch.size() ? 1 : 0;
  }
  block_ = make_store(*account_, shape_, block_first_.back());
  for (std::size_t head = 0; head < length_.size(); ++head) {
    for (int slot = 0; slot < length_[head]; ++slot) {
      commit_entry(static_cast<int>(head), slot, kept(head)[static_cast<std::size_t>(slot)], plan, scratch);
    }
  }
}

void LayerLanes::commit_entry(int head, int slot, std::int32_t from, const KeepPlan& plan, const LayerScratch& scratch) {
  const Entry to = entry(head, slot);
  const std::int32_t position = scratch.positions()[static_cast<std::size_t>(from)];
  if (is_ranked(head)) {
    std::vector<float> key(static_cast<std::size_t>(shape_.head_dim));
    decode_row(scratch.type(), scratch.keys(head).row(from), key);
    shape_.by_rank->shift(key.data(), -static_cast<std::int64_t>(position));
    encode_row(shape_.type.key, key, to.key);
  } else {
    recode(scratch.keys(head), from, shape_.type.key, to.key);
  }
  if (plan.values.empty()) {
    recode(scratch.values(head), from, shape_.type.value, to.value);
  } else {
    const auto dim = static_cast<std::size_t>(shape_.head_dim);
    encode_row(shape_.type.value, std::span(plan.values[static_cast<std::size_t>(head)]).subspan(static_cast<std::size_t>(slot) * dim, dim),
               to.value);
  }
  *to.position = position;
  if (to.rank != nullptr) *to.rank = slot;
  for (std::size_t column = 0; column < static_cast<std::size_t>(shape_.state_columns); ++column) {
    const auto at = static_cast<std::size_t>(slot);
    to.state[column * to.state_step] = plan.state.empty() ? 0.0F : plan.state[column][static_cast<std::size_t>(head)][at];
  }
}

int LayerLanes::tail_pages() const {
  int longest = 0;
  for (std::size_t head = 0; head < length_.size(); ++head) {
    longest = std::max(longest, length_[head] - (block_first_[head + 1] - block_first_[head]));
  }
  return (longest + kPage - 1) / kPage;
}

void LayerLanes::reserve(int count) {
  for (std::size_t head = 0; head < length_.size(); ++head) {
    const int tail = length_[head] + count - (block_first_[head + 1] - block_first_[head]);
    while (static_cast<int>(pages_.size()) * kPage < tail) pages_.push_back(make_store(*account_, shape_, shape_.kv_heads * kPage));
  }
}

LayerLanes::Entry LayerLanes::entry(int head, int slot) const {
  const int first = block_first_[static_cast<std::size_t>(head)];
  const int in_block = block_first_[static_cast<std::size_t>(head) + 1] - first;
  if (slot < in_block) return block_.entry(shape_, first, in_block, slot);
  const int tail = slot - in_block;
  return pages_[static_cast<std::size_t>(tail / kPage)].entry(shape_, head * kPage, kPage, tail % kPage);
}

void LayerLanes::write(int head, int slot, std::int32_t position, std::span<const float> key, std::span<const float> value) {
  const Entry to = entry(head, slot);
  if (is_ranked(head)) {
    std::vector<float> unrotated(key.begin(), key.end());
    shape_.by_rank->shift(unrotated.data(), -static_cast<std::int64_t>(position));
    encode_row(shape_.type.key, unrotated, to.key);
  } else {
    encode_row(shape_.type.key, key, to.key);
  }
  encode_row(shape_.type.value, value, to.value);
  *to.position = position;
  if (to.rank != nullptr) *to.rank = length(head) - 1;
  for (int column = 0; column < shape_.state_columns; ++column) to.state[static_cast<std::size_t>(column) * to.state_step] = 0.0F;
}

void LayerLanes::append(int head, std::int32_t position, std::span<const float> key, std::span<const float> value) {
  const int slot = length_[static_cast<std::size_t>(head)]++;
  write(head, slot, position, key, value);
}

void LayerLanes::replace(int head, int slot, std::int32_t position, std::span<const float> key, std::span<const float> value) {
  if (shape_.by_rank != nullptr) close_ranks(head, slot);
  write(head, slot, position, key, value);
}

void LayerLanes::remove(int head, int slot) {
  if (shape_.by_rank != nullptr) close_ranks(head, slot);
  const int last = --length_[static_cast<std::size_t>(head)];
  if (slot != last) {
    const Entry from = entry(head, last);
    const Entry to = entry(head, slot);
    std::memcpy(to.key, from.key, row_bytes(shape_.type.key, shape_.head_dim));
    std::memcpy(to.value, from.value, row_bytes(shape_.type.value, shape_.head_dim));
    *to.position = *from.position;
    if (to.rank != nullptr) *to.rank = *from.rank;
    for (std::size_t column = 0; column < static_cast<std::size_t>(shape_.state_columns); ++column) {
      to.state[column * to.state_step] = from.state[column * from.state_step];
    }
  }
  const auto wanted = static_cast<std::size_t>(tail_pages()) + 1;  // one to come: a lane that hovers about a page's end must not thrash
  if (pages_.size() > wanted) pages_.resize(wanted);
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

void LayerLanes::rank(int head) {
  if (is_ranked(head)) return;
  ranked_[static_cast<std::size_t>(head)] = 1;
  std::vector<std::pair<std::int32_t, int>> order;
  std::vector<float> key(static_cast<std::size_t>(shape_.head_dim));
  for (int slot = 0; slot < length(head); ++slot) {
    const Entry at = entry(head, slot);
    decode_row(shape_.type.key, at.key, key);
    shape_.by_rank->shift(key.data(), -static_cast<std::int64_t>(*at.position));
    encode_row(shape_.type.key, key, at.key);
    order.emplace_back(*at.position, slot);
  }
  std::sort(order.begin(), order.end());
  for (std::size_t r = 0; r < order.size(); ++r) *entry(head, order[r].second).rank = static_cast<std::int32_t>(r);
}

void LayerLanes::close_ranks(int head, int slot) {
  rank(head);
  const std::int32_t leaving = *entry(head, slot).rank;
  for_each_stretch(head, [leaving](const LaneStretch& stretch) {
    for (int i = 0; i < stretch.count(); ++i) stretch.ranks[i] -= stretch.ranks[i] > leaving ? 1 : 0;
  });
}

void LayerLanes::add_to_value(int head, int slot, std::span<const float> addend) {
  std::vector<float> value(addend.size());
  std::byte* const at = entry(head, slot).value;
  decode_row(shape_.type.value, at, value);
  for (std::size_t i = 0; i < value.size(); ++i) value[i] += addend[i];
  encode_row(shape_.type.value, value, at);
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
  for (int slot = range.begin; slot < range.end;) {
    const int count = std::min(together(head, slot), range.end - slot);
    const Entry at = entry(head, slot);
    const auto rows = [&](const std::byte* data, ElementType type) {
      return Rows{data, row_bytes(type, shape_.head_dim), count, shape_.head_dim, type};
    };
    LanePiece piece{rows(at.key, shape_.type.key), rows(at.value, shape_.type.value), range.query_shift};
    if (is_ranked(head) && range.keys == AttendRange::Keys::at_their_ranks) {
      piece.turns = at.rank;
      piece.turns_end = length(head);
    }
    out.push_back(piece);
    slot += count;
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
