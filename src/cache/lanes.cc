#include "cache/lanes.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace winnow::cache {

namespace {

Buffer copy(MemoryAccount& account, const Buffer& from, const char* purpose) {
  Buffer to(account, from.size(), purpose);
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
  return to;
}

/// Writes one stored row in another encoding, by way of `row`.
void recode(const Rows& from, int index, ElementType type, std::byte* out, std::vector<float>& row) {
  if (from.type == type) {
    std::memcpy(out, from.row(index), row_bytes(type, from.dim));
    return;
  }
  row.resize(static_cast<std::size_t>(from.dim));
  decode_row(from.type, from.row(index), row);
  encode_row(type, row, out);
}

}  // namespace

std::size_t entry_bytes(const LaneShape& shape) {
  return row_bytes(shape.type.key, shape.head_dim) + row_bytes(shape.type.value, shape.head_dim) + sizeof(std::int32_t) +
         static_cast<std::size_t>(shape.state_columns) * sizeof(float);
}

LayerLanes::Store LayerLanes::make_store(MemoryAccount& account, const LaneShape& shape, int entries) {
  const auto n = static_cast<std::size_t>(entries);
  return {Buffer(account, n * row_bytes(shape.type.key, shape.head_dim), "kept keys"),
          Buffer(account, n * row_bytes(shape.type.value, shape.head_dim), "kept values"),
          Buffer(account, n * sizeof(std::int32_t), "positions of kept entries"),
          Buffer(account, n * static_cast<std::size_t>(shape.state_columns) * sizeof(float), "state of kept entries")};
}

LayerLanes::Store LayerLanes::copy_store(MemoryAccount& account, const Store& from) {
  return {copy(account, from.keys, "kept keys"), copy(account, from.values, "kept values"),
          copy(account, from.positions, "positions of kept entries"), copy(account, from.state, "state of kept entries")};
}

LayerLanes::Entry LayerLanes::Store::entry(const LaneShape& shape, int first, int capacity, int index) const {
  // A store owns its memory; its constness is that of the lanes around it.
  const auto at = static_cast<std::size_t>(first + index);
  auto* const positions_at = const_cast<std::int32_t*>(positions.as<std::int32_t>().data());
  auto* const state_at = const_cast<float*>(state.as<float>().data());
  return {const_cast<std::byte*>(keys.data()) + at * row_bytes(shape.type.key, shape.head_dim),
          const_cast<std::byte*>(values.data()) + at * row_bytes(shape.type.value, shape.head_dim), positions_at + at,
          state_at == nullptr ? nullptr : state_at + static_cast<std::ptrdiff_t>(first) * shape.state_columns + index,
          static_cast<std::size_t>(capacity)};
}

LayerLanes::LayerLanes(MemoryAccount& account, const LaneShape& shape)
    : account_(&account),
      shape_(shape),
      block_first_(static_cast<std::size_t>(shape.kv_heads) + 1, 0),
      length_(static_cast<std::size_t>(shape.kv_heads), 0) {}

LayerLanes LayerLanes::clone(MemoryAccount& account) const {
  LayerLanes out(account, shape_);
  out.block_ = copy_store(account, block_);
  out.block_first_ = block_first_;
  out.length_ = length_;
  for (const auto& page : pages_) out.pages_.push_back(copy_store(account, page));
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
  }
  block_ = make_store(*account_, shape_, block_first_.back());
  std::vector<float> row;
  for (std::size_t head = 0; head < length_.size(); ++head) {
    const int h = static_cast<int>(head);
    const Rows keys = scratch.keys(h);
    const Rows values = scratch.values(h);
    for (int slot = 0; slot < length_[head]; ++slot) {
      const std::int32_t from = kept(head)[static_cast<std::size_t>(slot)];
      const Entry to = entry(h, slot);
      recode(keys, from, shape_.type.key, to.key, row);
      recode(values, from, shape_.type.value, to.value, row);
      *to.position = scratch.positions()[static_cast<std::size_t>(from)];
      for (int column = 0; column < shape_.state_columns; ++column) {
        const auto c = static_cast<std::size_t>(column);
        to.state[c * to.state_step] = plan.state.empty() ? 0.0F : plan.state[c][head][static_cast<std::size_t>(slot)];
      }
    }
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

void LayerLanes::append(int head, std::int32_t position, std::span<const float> key, std::span<const float> value) {
  replace(head, length_[static_cast<std::size_t>(head)]++, position, key, value);
}

void LayerLanes::replace(int head, int slot, std::int32_t position, std::span<const float> key, std::span<const float> value) {
  const Entry to = entry(head, slot);
  encode_row(shape_.type.key, key, to.key);
  encode_row(shape_.type.value, value, to.value);
  *to.position = position;
  for (int column = 0; column < shape_.state_columns; ++column) to.state[static_cast<std::size_t>(column) * to.state_step] = 0.0F;
}

void LayerLanes::remove(int head, int slot) {
  const int last = --length_[static_cast<std::size_t>(head)];
  if (slot != last) {
    const Entry from = entry(head, last);
    const Entry to = entry(head, slot);
    std::memcpy(to.key, from.key, row_bytes(shape_.type.key, shape_.head_dim));
    std::memcpy(to.value, from.value, row_bytes(shape_.type.value, shape_.head_dim));
    *to.position = *from.position;
    for (std::size_t column = 0; column < static_cast<std::size_t>(shape_.state_columns); ++column) {
      to.state[column * to.state_step] = from.state[column * from.state_step];
    }
  }
  const auto wanted = static_cast<std::size_t>(tail_pages()) + 1;  // one to come: a lane that hovers about a page's end must not thrash
  if (pages_.size() > wanted) pages_.resize(wanted);
}

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
    out.push_back({rows(at.key, shape_.type.key), rows(at.value, shape_.type.value), range.query_shift});
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
