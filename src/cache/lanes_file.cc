// SPDX-License-Identifier: Apache-2.0
#include "cache/lanes_file.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>

#include "base/as_size.h"
#include "base/format.h"
#include "cache/element.h"
#include "winnow/error.h"

namespace winnow::cache {

namespace {

/// Description of a lane in a file, before its entries.
struct Extent {
  std::uint32_t length;     ///< entries with vectors
  std::uint32_t block;      ///< number of them in the initial block; the others are in the tail
  std::uint32_t unrotated;  ///< 1: keys are un-rotated
  std::uint32_t merged_entries;
};

Extent read_extent(ByteCursor& from) {
  Extent extent{};
  extent.length = from.take<std::uint32_t>("a lane's length");
  extent.block = from.take<std::uint32_t>("a lane's block");
  extent.unrotated = from.take<std::uint32_t>("a lane's key frame");
  extent.merged_entries = from.take<std::uint32_t>("the number of a lane's merged entries");
  return extent;
}

/// Bytes of an entry in a file, without its rank, which follows from the positions.
std::size_t saved_entry_bytes(LaneShape shape) {
  shape.merged_entries = 0;
  return entry_bytes(shape) - (shape.has_ranks() ? sizeof(std::int32_t) : 0);
}

std::size_t saved_merged_bytes(const LaneShape& shape) {
  return MergedEntries::bytes(shape.state_columns) - sizeof(std::int32_t);
}

/// Calls each(block, head) for all summaries of lanes of these lengths, in file order.
template <class Each>
void for_each_summary(const LaneShape& shape, std::span<const int> lengths, const Each& each) {
  const int longest = *std::max_element(lengths.begin(), lengths.end());
  for (int block = 0; block < summary_blocks(shape, longest); ++block) {
    for (int head = 0; head < shape.kv_heads; ++head) {
      if (block < summary_blocks(shape, lengths[as_size(head)])) each(block, head);
    }
  }
}

std::vector<int> blocks_of(const LaneShape& shape, std::span<const int> lengths) {
  std::vector<int> out;
  for (const int length : lengths) out.push_back(summary_blocks(shape, length));
  return out;
}

std::size_t bytes_of_summaries(const LaneShape& shape, std::span<const int> lengths) {
  const auto blocks = blocks_of(shape, lengths);
  return std::accumulate(blocks.begin(), blocks.end(), std::size_t{0}) * summary_bytes(shape);
}

std::vector<int> lengths_of(const LayerLanes& lanes) {
  std::vector<int> out;
  for (int head = 0; head < lanes.shape().kv_heads; ++head) out.push_back(lanes.length(head));
  return out;
}

/// The extents of a layer's lanes.
struct Extents {
  std::vector<int> block;           ///< [H_kv] entries in the initial block
  std::vector<int> tail;            ///< [H_kv] entries after it
  std::vector<char> unrotated;      ///< [H_kv]
  std::vector<int> merged_entries;  ///< [H_kv]
  std::size_t bytes = 0;            ///< of all entries in the file

  /// [H_kv] lengths of the lanes.
  std::vector<int> lengths() const {
    std::vector<int> out;
    for (std::size_t head = 0; head < block.size(); ++head) out.push_back(block[head] + tail[head]);
    return out;
  }
};

void check_extent(const Extent& extent, const LaneShape& shape, int tokens, const ByteCursor& from) {
  const auto [length, block, unrotated, merged_entries] = extent;
  const auto most = static_cast<std::uint32_t>(tokens);
  if (length > most || block > length)
    from.fail(fmt::format("a lane has {} entries, {} of them in its block, after {} tokens", length, block, tokens));
  if (unrotated > (shape.unrotates == nullptr ? 0U : 1U))
    from.fail(fmt::format("a lane's key frame is {}, which its method does not use", unrotated));
  if (merged_entries > 0 && (unrotated == 0 || shape.merged_entries == 0 || merged_entries > most))
    from.fail(fmt::format("a lane has {} merged entries, but its method merges nothing", merged_entries));
}

Extents read_extents(ByteCursor& from, const LaneShape& shape, int tokens) {
  Extents out;
  std::size_t in_blocks = 0;
  for (int head = 0; head < shape.kv_heads; ++head) {
    const Extent extent = read_extent(from);
    check_extent(extent, shape, tokens, from);
    out.bytes += extent.length * saved_entry_bytes(shape) + extent.merged_entries * saved_merged_bytes(shape);
    in_blocks += extent.block;
    if (in_blocks > as_size(std::numeric_limits<int>::max()))
      from.fail(fmt::format("a layer has {} entries", in_blocks));
    out.block.push_back(static_cast<int>(extent.block));
    out.tail.push_back(static_cast<int>(extent.length - extent.block));
    out.unrotated.push_back(static_cast<char>(extent.unrotated));
    out.merged_entries.push_back(static_cast<int>(extent.merged_entries));
  }
  return out;
}

/// Throws MemoryError if lanes of these extents, and summaries, do not fit. The longest tail determines the tail blocks
/// of all lanes.
void check_memory(const Extents& extents, const LaneShape& shape) {
  const auto in_blocks = std::accumulate(extents.block.begin(), extents.block.end(), std::size_t{0});
  const auto tail = as_size(*std::max_element(extents.tail.begin(), extents.tail.end()));
  const std::size_t needed = (in_blocks + (tail + LaneStorage::kTailBlock) * extents.tail.size()) * entry_bytes(shape) +
                             bytes_of_summaries(shape, extents.lengths());
  if (needed > available_memory()) {
    throw MemoryError(fmt::format("the lanes of one layer need {}, but only {} are available", format_bytes(needed),
                                  format_bytes(available_memory())),
                      needed);
  }
}

/// Addresses of the vectors of `count` entries: for writing them to a file, or for reading them from it.
StoredEntry to_transfer(const LaneStorage& storage, int head, int slot, int /*count*/) {
  return storage.entry(head, slot);
}
StoredVectors to_transfer(LaneStorage& storage, int head, int slot, int count) {
  return storage.change(head, slot, count);
}

/// Calls each(bytes, what) for all parts of a lane's entries, in file order. `Storage` may be const.
template <class Storage, class Each>
void for_each_part(Storage& storage, int head, const Each& each) {
  const LaneShape& shape = storage.shape();
  const std::size_t key = row_bytes(shape.type.key, shape.head_dim);
  const std::size_t value = row_bytes(shape.type.value, shape.head_dim);
  const auto part = [&](std::string_view what, const auto& bytes_of) {
    int slot = 0;
    storage.for_each_run(head, [&](const StoredEntry& at, int count) {
      each(bytes_of(at, slot, count), what);
      slot += count;
    });
  };
  part("a lane's positions", [](const StoredEntry& at, int /*slot*/, int n) {
    return std::as_writable_bytes(std::span(at.position, as_size(n)));
  });
  part("a lane's rows", [&](const StoredEntry& /*at*/, int slot, int n) {
    return std::span(to_transfer(storage, head, slot, n).key, as_size(n) * key);
  });
  part("a lane's rows", [&](const StoredEntry& /*at*/, int slot, int n) {
    return std::span(to_transfer(storage, head, slot, n).value, as_size(n) * value);
  });
  for (int c = 0; c < shape.state_columns; ++c) {
    part("a lane's state", [c](const StoredEntry& at, int /*slot*/, int n) {
      return std::as_writable_bytes(std::span(at.column(c), as_size(n)));
    });
  }
}

void load_merged_entries(ByteCursor& from, LaneContents& lanes, int head, int count) {
  std::vector<std::int32_t> slots(count);
  from.read(std::span(slots), "the slots of a lane's centres");
  const int length = lanes.storage.length(head);
  auto& all = lanes.merged_entries[head];
  all.reserve(count);
  std::int32_t before = 0;
  for (const std::int32_t slot : slots) {
    if (slot < before || slot >= length)
      from.fail(fmt::format("a merged entry's centre is in slot {} of {}", slot, length));
    before = slot;
    all.add({slot, 0, 1});
  }
  from.read(all.positions(), "the positions of merged entries");
  from.read(all.scales(), "the scales of merged entries");
  for (int c = 0; c < lanes.storage.shape().state_columns; ++c) from.read(all.column(c), "the state of merged entries");
}

void check_positions(std::vector<std::int32_t> positions, int tokens, const ByteCursor& from) {
  if (!std::is_sorted(positions.begin(), positions.end())) std::sort(positions.begin(), positions.end());
  for (std::size_t i = 0; i < positions.size(); ++i) {
    if (positions[i] < 0 || positions[i] >= tokens || (i > 0 && positions[i] == positions[i - 1])) {
      from.fail(fmt::format("a lane has an entry at position {}, expected each of 0 to {} at most once", positions[i],
                            tokens - 1));
    }
  }
}

/// Allocates lanes of these extents.
LaneContents make_contents(const Extents& extents, MemoryAccount& account, const LaneShape& shape) {
  LaneContents out(account, shape);
  out.unrotated = extents.unrotated;
  out.storage.allocate(extents.block);
  out.storage.reserve(*std::max_element(extents.tail.begin(), extents.tail.end()));
  for (int head = 0; head < shape.kv_heads; ++head) out.storage.append(head, extents.tail[head]);
  return out;
}

}  // namespace

std::vector<int> saved_lengths(ByteCursor& from, int kv_heads) {
  std::vector<int> lengths;
  for (int head = 0; head < kv_heads; ++head) lengths.push_back(static_cast<int>(read_extent(from).length));
  return lengths;
}

std::size_t saved_bytes(const LayerLanes& lanes) {
  const LaneShape& shape = lanes.shape();
  std::size_t bytes = as_size(shape.kv_heads) * sizeof(Extent) + bytes_of_summaries(shape, lengths_of(lanes));
  for (int head = 0; head < shape.kv_heads; ++head) {
    bytes += as_size(lanes.length(head)) * saved_entry_bytes(shape) +
             as_size(lanes.merged_entries(head).count()) * saved_merged_bytes(shape);
  }
  return bytes;
}

void save(const LayerLanes& lanes, ByteSink& to) {
  const int heads = lanes.shape().kv_heads;
  for (int head = 0; head < heads; ++head) {
    put(to, static_cast<std::uint32_t>(lanes.length(head)));
    put(to, static_cast<std::uint32_t>(std::min(lanes.length(head), lanes.storage().block_slots(head))));
    put(to, static_cast<std::uint32_t>(lanes.is_unrotated(head) ? 1 : 0));
    put(to, static_cast<std::uint32_t>(lanes.merged_entries(head).count()));
  }
  for (int head = 0; head < heads; ++head) {
    for_each_part(lanes.storage(), head,
                  [&to](std::span<const std::byte> bytes, std::string_view /*what*/) { to.write(bytes); });
  }
  for (int head = 0; head < heads; ++head) {
    const auto& some = lanes.merged_entries(head);
    put(to, some.slots());
    put(to, some.positions());
    put(to, some.scales());
    for (int c = 0; c < lanes.shape().state_columns; ++c) put(to, some.column(c));
  }
  for_each_summary(lanes.shape(), lengths_of(lanes),
                   [&](int block, int head) { to.write(lanes.summaries().bytes(head, block)); });
}

void load(GrowingLanes& lanes, ByteCursor& from, int tokens) {
  const LaneShape& shape = lanes.shape();
  const Extents extents = read_extents(from, shape, tokens);
  const auto lengths = extents.lengths();
  if (const auto expected = extents.bytes + bytes_of_summaries(shape, lengths); expected != from.left())
    from.fail(fmt::format("the entries of a layer take {} bytes, but {} are left", expected, from.left()));
  check_memory(extents, shape);
  LaneContents contents = make_contents(extents, lanes.account(), shape);
  contents.end = tokens;
  for (int head = 0; head < shape.kv_heads; ++head) {
    for_each_part(contents.storage, head,
                  [&from](std::span<std::byte> bytes, std::string_view what) { from.read(bytes, what); });
  }
  for (int head = 0; head < shape.kv_heads; ++head) {
    load_merged_entries(from, contents, head, extents.merged_entries[head]);
    check_positions(contents.positions(head), tokens, from);
  }
  lanes.assign(std::move(contents));
  lanes.summaries().allocate(blocks_of(shape, extents.block));
  lanes.summaries().reserve(blocks_of(shape, lengths));
  for_each_summary(shape, lengths,
                   [&](int block, int head) { from.read(lanes.summaries().bytes(head, block), "a block's summary"); });
  from.finish("a layer's lanes");
}

}  // namespace winnow::cache
