// SPDX-License-Identifier: Apache-2.0
#include "documents/stored_document.h"

#include <spdlog/fmt/fmt.h>

#include <atomic>
#include <cstring>
#include <list>
#include <numeric>
#include <utility>

#include "base/as_size.h"
#include "winnow/error.h"

namespace winnow::documents {

namespace {

using Span = std::span<const std::byte>;

std::size_t alignment_of(ElementType type) {
  return type == ElementType::f32 ? alignof(float) : alignof(std::uint16_t);
}

/// Memory that a layer's parts refer to.
struct Held {
  std::shared_ptr<const void> lease;
  std::list<store::Bytes> copies;                        ///< copies of rows that are not aligned
  std::vector<std::vector<std::int32_t>> positions;      ///< of compressed lanes
  std::shared_ptr<const std::vector<std::int32_t>> all;  ///< 0, 1, …
};

/// Encoded rows, copied only if they are not aligned.
cache::Rows rows_of(Span bytes, std::size_t row, int dim, ElementType type, Held& held) {
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % alignment_of(type) != 0)
    bytes = held.copies.emplace_back(bytes.begin(), bytes.end());
  return {bytes.data(), row, static_cast<int>(bytes.size() / row), dim, type};
}

class StoredDocument : public Document {
 public:
  StoredDocument(std::shared_ptr<const store::ByteStore> from, ContentRecord content, StoredHead stored,
                 std::string what)
      : from_(std::move(from)),
        content_(std::move(content)),
        stored_(std::move(stored)),
        what_(std::move(what)),
        has_verified_table_(stored_.sums.size()) {
    auto all = std::make_shared<std::vector<std::int32_t>>(tokens());
    std::iota(all->begin(), all->end(), 0);
    positions_ = std::move(all);
  }

  const DocumentHead& head() const override { return stored_.head; }
  LayerPart read(int layer, std::span<const TokenRange> stretches) const override;
  LayerPart read_all(int layer) const override;

 private:
  BlockLayout layout() const { return stored_.head.layout(); }
  const engine::SavedHeads& heads(int layer) const { return stored_.head.saved.model.of_layer(layer); }
  PlainLayer plain(int layer) const { return {stored_.head.saved, layer}; }
  const KvType& type() const { return stored_.head.saved.options.kv_type; }
  std::string layer_name(int layer) const { return fmt::format("layer {} of {}", layer, what_); }
  store::Lease lease(int layer, std::span<const store::ByteRange> ranges) const;
  void verify_table(int layer, std::span<const Span> table) const;
  void verify_blocks(int layer, const TokenRange& blocks, std::span<const Span> lanes) const;
  [[noreturn]] void fail_sum(int layer, const std::string& part, std::uint64_t is, std::uint64_t expected) const {
    throw InputError(fmt::format("{} is damaged: the checksum of {} is {:016x}, expected {:016x}", layer_name(layer),
                                 part, is, expected));
  }

  std::shared_ptr<const store::ByteStore> from_;
  ContentRecord content_;
  StoredHead stored_;
  std::string what_;
  mutable std::vector<std::atomic<bool>> has_verified_table_;  ///< [layer]
  std::shared_ptr<const std::vector<std::int32_t>> positions_;
};

store::Lease StoredDocument::lease(int layer, std::span<const store::ByteRange> ranges) const {
  auto found = from_->value(content_.layer_key(layer), ranges);
  if (!found)
    throw InputError(fmt::format("{} is gone: the document was removed or replaced meanwhile", layer_name(layer)));
  const auto expected = stored_.sums[layer].size;
  if (found->size != expected)
    throw InputError(
        fmt::format("{} is damaged: it has {} bytes, expected {}", layer_name(layer), found->size, expected));
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const auto whole = store::length_in(ranges[i], found->size);
    if (found->parts[i].size() != whole)
      throw InputError(fmt::format("{} is damaged: only {} of {} bytes were received", layer_name(layer),
                                   found->parts[i].size(), whole));
  }
  return std::move(*found);
}

void StoredDocument::verify_table(int layer, std::span<const Span> table) const {
  Hasher hasher = hasher_of(layer, -1);
  for (const auto& part : table) hasher.add(part);
  const auto expected = stored_.sums[layer].table;
  if (hasher.value() != expected) fail_sum(layer, "its positions", hasher.value(), expected);
  check_plain_table(stored_.head.saved, layer, table, layer_name(layer));
  has_verified_table_[layer] = true;
}

/// `lanes`: keys and values of each KV head, of these blocks.
void StoredDocument::verify_blocks(int layer, const TokenRange& blocks, std::span<const Span> lanes) const {
  const auto first = layout().begin(blocks.begin);
  const PlainLayer plain = this->plain(layer);
  for (int block = blocks.begin; block < blocks.end; ++block) {
    const auto begin = as_size(layout().begin(block) - first);
    const auto count = as_size(layout().end(block) - layout().begin(block));
    Hasher hasher = hasher_of(layer, block);
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      const std::size_t row = i % 2 == 0 ? plain.key_row() : plain.value_row();
      hasher.add(lanes[i].subspan(begin * row, count * row));
    }
    const auto expected = stored_.sums[layer].blocks[block];
    if (hasher.value() != expected) fail_sum(layer, fmt::format("block {}", block), hasher.value(), expected);
  }
}

LayerPart StoredDocument::read(int layer, std::span<const TokenRange> stretches) const {
  const PlainLayer plain = this->plain(layer);
  const int heads = this->heads(layer).kv_heads;
  const int dim = this->heads(layer).head_dim;
  std::vector<store::ByteRange> ranges;
  std::vector<TokenRange> blocks;  ///< blocks that a stretch touches; checksums cover whole blocks
  for (const auto& stretch : stretches) {
    blocks.push_back({stretch.begin / kBlock, (std::max(stretch.begin + 1, stretch.end) + kBlock - 1) / kBlock});
    const int begin = layout().begin(blocks.back().begin);
    const int end = layout().end(blocks.back().end - 1);
    for (int h = 0; h < heads; ++h) {
      ranges.push_back(plain.keys(h, begin, end));
      ranges.push_back(plain.values(h, begin, end));
    }
  }
  const bool first = !has_verified_table_[layer];
  if (first) ranges.push_back(plain.extents());
  for (int h = 0; first && h < heads; ++h) ranges.push_back(plain.positions(h));

  const store::Lease found = lease(layer, ranges);
  const auto held = std::make_shared<Held>();
  held->lease = found.hold;
  held->all = positions_;
  const std::size_t lanes = 2 * as_size(heads);
  if (first) verify_table(layer, std::span(found.parts).subspan(stretches.size() * lanes));
  LayerPart out;
  for (std::size_t i = 0; i < stretches.size(); ++i) {
    const auto parts = std::span(found.parts).subspan(i * lanes, lanes);
    verify_blocks(layer, blocks[i], parts);
    const int skipped = stretches[i].begin - layout().begin(blocks[i].begin);
    const int count = stretches[i].end - stretches[i].begin;
    auto& stretch = out.stretches.emplace_back();
    for (std::size_t h = 0; h < parts.size(); h += 2) {
      const auto keys = rows_of(parts[h], plain.key_row(), dim, type().key, *held);
      const auto values = rows_of(parts[h + 1], plain.value_row(), dim, type().value, *held);
      stretch.push_back({std::span(*positions_).subspan(stretches[i].begin, as_size(count)), keys.slice(skipped, count),
                         values.slice(skipped, count)});
    }
  }
  out.lease = held;
  return out;
}

LayerPart StoredDocument::read_all(int layer) const {
  const TokenRange whole{0, tokens()};
  if (is_plain(stored_.head.saved)) return read(layer, std::span(&whole, 1));
  const store::Lease found = lease(layer, std::span(&store::kWhole, 1));
  const Span bytes = found.parts.front();
  Hasher hasher = hasher_of(layer, -1);
  hasher.add(bytes);
  const auto expected = stored_.sums[layer].table;
  if (hasher.value() != expected) fail_sum(layer, "its lanes", hasher.value(), expected);
  const auto held = std::make_shared<Held>();
  held->lease = found.hold;
  const PlainLayer plain = this->plain(layer);
  const int dim = heads(layer).head_dim;
  auto lanes = read_kept_lanes(stored_.head.saved, layer, bytes, layer_name(layer));
  LayerPart out;
  auto& stretch = out.stretches.emplace_back();
  for (auto& lane : lanes) {
    held->positions.push_back(
        std::move(lane.positions));  // moving keeps the vectors' memory, so the spans below stay valid
    stretch.push_back({held->positions.back(),
                       rows_of(store::part_of(bytes, lane.keys), plain.key_row(), dim, type().key, *held),
                       rows_of(store::part_of(bytes, lane.values), plain.value_row(), dim, type().value, *held)});
  }
  out.lease = held;
  return out;
}

}  // namespace

StoredHead read_head(const store::ByteStore& from, const ContentRecord& content, const std::string& what) {
  const auto found = from.value(content.head_key(), std::span(&store::kWhole, 1));
  if (!found) throw InputError(fmt::format("{} is gone: it was removed or replaced meanwhile", what));
  StoredHead out = StoredHead::read(found->parts.front(), what);
  if (out.head.saved.model.layers != content.layers || out.head.saved.seen != content.tokens) {
    throw InputError(fmt::format("{} is damaged: its head has {} layers and {} tokens, expected {} and {}", what,
                                 out.head.saved.model.layers, out.head.saved.seen, content.layers, content.tokens));
  }
  return out;
}

std::shared_ptr<const Document> open_document(std::shared_ptr<const store::ByteStore> from,
                                              const ContentRecord& content, std::string what) {
  StoredHead head = read_head(*from, content, what);
  return std::make_shared<StoredDocument>(std::move(from), content, std::move(head), std::move(what));
}

}  // namespace winnow::documents
