// SPDX-License-Identifier: Apache-2.0
#include "documents/layer_bytes.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstring>

#include "base/as_size.h"
#include "winnow/error.h"

namespace winnow::documents {

namespace {

constexpr std::size_t kExtent =
    4 * sizeof(std::uint32_t);  ///< of one lane: entries, entries in its block, rotation of keys, merged entries

/// Header of one lane, before the lanes of a layer.
struct Extent {
  std::uint32_t entries;
  std::uint32_t in_block;
  std::uint32_t unrotated;
  std::uint32_t merged_entries;
};
static_assert(sizeof(Extent) == kExtent);

[[noreturn]] void fail(const std::string& what, const std::string& why) {
  throw InputError(fmt::format("{} is damaged: {}", what, why));
}

std::vector<Extent> read_extents(std::span<const std::byte> bytes, int heads, const std::string& what) {
  std::vector<Extent> out(heads);
  if (bytes.size() < out.size() * kExtent)
    fail(what, fmt::format("{} bytes are too few for the extents of {} lanes", bytes.size(), heads));
  std::memcpy(out.data(), bytes.data(), out.size() * kExtent);
  for (const auto& extent : out) {
    if (extent.unrotated != 0 || extent.merged_entries != 0 || extent.in_block > extent.entries) {
      fail(what, fmt::format("a lane has {} entries, {} in its block, key frame {} and {} merged entries",
                             extent.entries, extent.in_block, extent.unrotated, extent.merged_entries));
    }
  }
  return out;
}

}  // namespace

PlainLayer::PlainLayer(const engine::SavedHead& head, int layer)
    : heads_(head.model.of_layer(layer).kv_heads),
      tokens_(head.seen),
      key_row_(cache::row_bytes(head.options.kv_type.key, head.model.of_layer(layer).head_dim)),
      value_row_(cache::row_bytes(head.options.kv_type.value, head.model.of_layer(layer).head_dim)),
      table_(as_size(heads_) * kExtent),
      keys_(as_size(tokens_) * sizeof(std::int32_t)),
      values_(keys_ + as_size(tokens_) * key_row_),
      lane_(values_ + as_size(tokens_) * value_row_) {}

PlainLayer::Place PlainLayer::place_in_rows(std::size_t at, std::size_t first, std::size_t row) const {
  const int block = static_cast<int>((at - first) / row) / kBlock;
  return {block, first + row * as_size(BlockLayout{tokens_}.end(block))};
}

PlainLayer::Place PlainLayer::place_of(std::size_t at) const {
  if (at < table_) return {-1, table_};
  const std::size_t begin = lane(static_cast<int>((at - table_) / lane_));
  if (at < begin + keys_) return {-1, begin + keys_};
  return at < begin + values_ ? place_in_rows(at, begin + keys_, key_row_)
                              : place_in_rows(at, begin + values_, value_row_);
}

Hasher hasher_of(int layer, int block) {
  return Hasher((static_cast<std::uint64_t>(layer) << 32U) | static_cast<std::uint32_t>(block + 1));
}

SummingSink::SummingSink(const engine::SavedHead& head, int layer, ByteSink* to) : to_(to) {
  if (is_plain(head)) plain_.emplace_back(head, layer);
  const int blocks = plain_.empty() ? 0 : BlockLayout{head.seen}.blocks();
  for (int block = -1; block < blocks; ++block) hashers_.push_back(hasher_of(layer, block));
}

void SummingSink::write(std::span<const std::byte> bytes) {
  if (to_ != nullptr) to_->write(bytes);
  while (!bytes.empty()) {
    std::size_t count = bytes.size();
    std::size_t hasher = 0;
    if (!plain_.empty() && written_ < plain_.front().size()) {
      const auto place = plain_.front().place_of(written_);
      count = std::min(count, place.end - written_);
      hasher = as_size(place.block + 1);
    }
    hashers_[hasher].add(bytes.first(count));
    bytes = bytes.subspan(count);
    written_ += count;
  }
}

LayerSums SummingSink::sums() const {
  LayerSums out{written_, hashers_.front().value(), {}};
  for (std::size_t i = 1; i < hashers_.size(); ++i) out.blocks.push_back(hashers_[i].value());
  return out;
}

void check_plain_table(const engine::SavedHead& head, int layer, std::span<const std::span<const std::byte>> table,
                       const std::string& what) {
  for (const auto& extent : read_extents(table.front(), head.model.of_layer(layer).kv_heads, what)) {
    if (extent.entries != static_cast<std::uint32_t>(head.seen))
      fail(what, fmt::format("a lane has {} entries of {} tokens", extent.entries, head.seen));
  }
  std::vector<std::int32_t> positions(head.seen);
  for (const auto& bytes : table.subspan(1)) {
    if (bytes.size() != positions.size() * sizeof(std::int32_t))
      fail(what, fmt::format("{} bytes are not {} positions", bytes.size(), positions.size()));
    std::memcpy(positions.data(), bytes.data(), bytes.size());
    for (std::int32_t i = 0; i < head.seen; ++i) {
      if (positions[i] != i) fail(what, fmt::format("entry {} has position {}", i, positions[i]));
    }
  }
}

std::vector<KeptLane> read_kept_lanes(const engine::SavedHead& head, int layer, std::span<const std::byte> bytes,
                                      const std::string& what) {
  const auto& heads = head.model.of_layer(layer);
  const auto& type = head.options.kv_type;
  const std::size_t key_row = cache::row_bytes(type.key, heads.head_dim);
  const std::size_t value_row = cache::row_bytes(type.value, heads.head_dim);
  const std::size_t columns = head.options.spec.method().lanes.columns.size() * sizeof(float);
  std::size_t at = as_size(heads.kv_heads) * kExtent;
  std::vector<KeptLane> out;
  for (const auto& extent : read_extents(bytes, heads.kv_heads, what)) {
    const std::size_t entries = extent.entries;
    if (entries > as_size(head.seen) ||
        at + entries * (sizeof(std::int32_t) + key_row + value_row + columns) > bytes.size())
      fail(what, fmt::format("a lane has {} entries of {} tokens, and {} bytes are left", entries, head.seen,
                             bytes.size() - at));
    KeptLane lane;
    lane.positions.resize(entries);
    if (entries > 0) std::memcpy(lane.positions.data(), bytes.data() + at, entries * sizeof(std::int32_t));
    auto sorted = lane.positions;
    std::sort(sorted.begin(), sorted.end());
    if (entries > 0 && (sorted.front() < 0 || sorted.back() >= head.seen ||
                        std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()))
      fail(what, fmt::format("a lane has positions {} to {} of {} tokens, or a position twice", sorted.front(),
                             sorted.back(), head.seen));
    at += entries * sizeof(std::int32_t);
    lane.keys = {at, at + entries * key_row};
    lane.values = {lane.keys.end, lane.keys.end + entries * value_row};
    at = lane.values.end + entries * columns;
    out.push_back(std::move(lane));
  }
  if (at != bytes.size()) fail(what, fmt::format("{} bytes are left after its lanes", bytes.size() - at));
  return out;
}

void check_layer(const engine::SavedHead& head, int layer, std::span<const std::byte> bytes, const LayerSums& expected,
                 const std::string& what) {
  if (bytes.size() != expected.size)
    fail(what, fmt::format("it has {} bytes, expected {}", bytes.size(), expected.size));
  SummingSink sink(head, layer, nullptr);
  sink.write(bytes);
  const LayerSums sums = sink.sums();
  if (sums.table != expected.table)
    fail(what, fmt::format("the checksum of {} is {:016x}, expected {:016x}",
                           expected.blocks.empty() ? "its lanes" : "its positions", sums.table, expected.table));
  const auto wrong =
      std::mismatch(sums.blocks.begin(), sums.blocks.end(), expected.blocks.begin(), expected.blocks.end());
  if (wrong.first != sums.blocks.end())
    fail(what, fmt::format("the checksum of block {} is {:016x}, expected {:016x}", wrong.first - sums.blocks.begin(),
                           *wrong.first, *wrong.second));
  if (!is_plain(head)) {
    read_kept_lanes(head, layer, bytes, what);
    return;
  }
  const PlainLayer plain(head, layer);
  std::vector<std::span<const std::byte>> table{store::part_of(bytes, plain.extents())};
  for (int h = 0; h < head.model.of_layer(layer).kv_heads; ++h)
    table.push_back(store::part_of(bytes, plain.positions(h)));
  check_plain_table(head, layer, table, what);
}

}  // namespace winnow::documents
