// SPDX-License-Identifier: Apache-2.0
// LayerLanes in files.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <limits>

#include "base/as_size.h"
#include "base/format.h"
#include "cache/lanes.h"
#include "winnow/error.h"

namespace winnow::cache {

namespace {

/// What a file says of one lane before the entries.
struct Extent {
  std::uint32_t length;     ///< entries with vectors
  std::uint32_t block;      ///< how many of them lie in the block, the others in pages
  std::uint32_t unrotated;  ///< 1: the keys are
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

/// Bytes of one entry in a file: ranks follow from positions.
std::size_t saved_entry_bytes(LaneShape shape) {
  shape.merged_entries = 0;
  return entry_bytes(shape) - (shape.has_ranks() ? sizeof(std::int32_t) : 0);
}

std::size_t saved_merged_bytes(const LaneShape& shape) {
  return MergedEntries::bytes(shape.state_columns) - sizeof(std::int32_t);
}

std::size_t bytes_of_summaries(const LaneShape& shape, int blocks) {
  return as_size(blocks) * as_size(shape.kv_heads) * summary_bytes(shape);
}

template <class T>
std::span<T> first_of(T* data, int count) {
  return {data, as_size(count)};
}

}  // namespace

template <class Each>
void LayerLanes::for_each_run(int head, const Each& each) const {
  for (int slot = 0; slot < length(head);) {
    const int count = std::min(together(head, slot), length(head) - slot);
    each(entry(head, slot), count);
    slot += count;
  }
}

std::vector<int> LayerLanes::saved_lengths(ByteCursor& from, int kv_heads) {
  std::vector<int> lengths;
  for (int head = 0; head < kv_heads; ++head) lengths.push_back(static_cast<int>(read_extent(from).length));
  return lengths;
}

std::size_t LayerLanes::saved_bytes(int summaries) const {
  std::size_t bytes = length_.size() * sizeof(Extent) + bytes_of_summaries(shape_, summaries);
  for (int head = 0; head < shape_.kv_heads; ++head) {
    bytes += as_size(length(head)) * saved_entry_bytes(shape_) +
             as_size(merged_entries(head).count()) * saved_merged_bytes(shape_);
  }
  return bytes;
}

void LayerLanes::save(ByteSink& to, int summaries) const {
  for (std::size_t head = 0; head < length_.size(); ++head) {
    put(to, static_cast<std::uint32_t>(length_[head]));
    put(to, static_cast<std::uint32_t>(std::min(length_[head], block_first_[head + 1] - block_first_[head])));
    put(to, static_cast<std::uint32_t>(unrotated_[head]));
    put(to, static_cast<std::uint32_t>(merged_entries_[head].count()));
  }
  for (int head = 0; head < shape_.kv_heads; ++head) {
    const auto rows = [&](const std::byte* data, int count, ElementType type) {
      to.write({data, as_size(count) * row_bytes(type, shape_.head_dim)});
    };
    for_each_run(head, [&](const Entry& at, int count) {
      put(to, std::span<const std::int32_t>(first_of(at.position, count)));
    });
    for_each_run(head, [&](const Entry& at, int count) { rows(at.key, count, shape_.type.key); });
    for_each_run(head, [&](const Entry& at, int count) { rows(at.value, count, shape_.type.value); });
    for (int c = 0; c < shape_.state_columns; ++c) {
      for_each_run(head, [&](const Entry& at, int count) {
        put(to, std::span<const float>(first_of(at.state + as_size(c) * at.state_step, count)));
      });
    }
  }
  for (const auto& some : merged_entries_) {
    put(to, some.slots());
    put(to, some.positions());
    put(to, some.scales());
    for (int c = 0; c < shape_.state_columns; ++c) put(to, some.column(c));
  }
  for (int block = 0; block < summaries; ++block) {
    for (int head = 0; head < shape_.kv_heads; ++head) to.write({summary(head, block), summary_bytes(shape_)});
  }
}

std::vector<int> LayerLanes::load_extents(ByteCursor& from, int tokens, int summaries) {
  std::size_t expected = bytes_of_summaries(shape_, summaries);
  std::size_t in_blocks = 0;
  std::size_t tail = 0;
  std::vector<int> followed;
  for (std::size_t head = 0; head < length_.size(); ++head) {
    const auto [length, block, unrotated, merged_entries] = read_extent(from);
    if (length > static_cast<std::uint32_t>(tokens) || block > length) {
      from.fail(fmt::format("a lane has {} entries, {} of them in its block, of {} tokens", length, block, tokens));
    }
    if (unrotated > (shape_.unrotates == nullptr ? 0U : 1U)) {
      from.fail(fmt::format("a lane's key frame is {}, which its method has not", unrotated));
    }
    if (merged_entries > 0 &&
        (unrotated == 0 || shape_.merged_entries == 0 || merged_entries > static_cast<std::uint32_t>(tokens))) {
      from.fail(fmt::format("a lane has {} merged entries, which its method has not", merged_entries));
    }
    expected += length * saved_entry_bytes(shape_) + merged_entries * saved_merged_bytes(shape_);
    in_blocks += block;
    tail = std::max<std::size_t>(tail, length - block);
    length_[head] = static_cast<int>(length);
    unrotated_[head] = static_cast<char>(unrotated);
    followed.push_back(static_cast<int>(merged_entries));
    block_first_[head + 1] = block_first_[head] + static_cast<int>(block);
    if (in_blocks > as_size(std::numeric_limits<int>::max()))
      from.fail(fmt::format("a layer has {} entries", in_blocks));
  }
  if (expected != from.left())
    from.fail(fmt::format("the entries of a layer take {} bytes, {} are there", expected, from.left()));
  // One lane's long tail takes pages for all of them.
  const std::size_t needed = (in_blocks + (tail + kPage) * length_.size()) * entry_bytes(shape_) +
                             bytes_of_summaries(shape_, summaries + kSummaries);
  if (needed > available_memory()) {
    throw MemoryError(fmt::format("the lanes of one layer need {}, {} are available", format_bytes(needed),
                                  format_bytes(available_memory())),
                      needed);
  }
  return followed;
}

void LayerLanes::check_positions(int head, int tokens, const ByteCursor& from) const {
  auto positions = all_positions(head);
  if (!std::is_sorted(positions.begin(), positions.end())) std::sort(positions.begin(), positions.end());
  for (std::size_t i = 0; i < positions.size(); ++i) {
    if (positions[i] < 0 || positions[i] >= tokens || (i > 0 && positions[i] == positions[i - 1])) {
      from.fail(fmt::format("a lane has an entry of position {}, expected each of 0 to {} once at most", positions[i],
                            tokens - 1));
    }
  }
}

void LayerLanes::load_merged_entries(ByteCursor& from, int head, int count) {
  std::vector<std::int32_t> slots(count);
  from.read(std::span(slots), "the slots of a lane's centres");
  auto& all = merged_entries(head);
  all.reserve(count);
  std::int32_t before = 0;
  for (const std::int32_t slot : slots) {
    if (slot < before || slot >= length(head))
      from.fail(fmt::format("a merged entry's centre is in slot {} of {}", slot, length(head)));
    before = slot;
    all.add({slot, 0, 1});
  }
  from.read(all.positions(), "the positions of merged entries");
  from.read(all.scales(), "the scales of merged entries");
  for (int c = 0; c < shape_.state_columns; ++c) from.read(all.column(c), "the state of merged entries");
}

void LayerLanes::load(ByteCursor& from, int tokens, int summaries) {
  const auto followed = load_extents(from, tokens, summaries);
  end_ = tokens;
  block_ = make_store(*account_, shape_, block_first_.back());
  reserve(0);
  for (int head = 0; head < shape_.kv_heads; ++head) {
    const auto rows = [&](std::byte* data, int count, ElementType type) {
      from.read(std::span(data, as_size(count) * row_bytes(type, shape_.head_dim)), "a lane's rows");
    };
    for_each_run(head,
                 [&](const Entry& at, int count) { from.read(first_of(at.position, count), "a lane's positions"); });
    for_each_run(head, [&](const Entry& at, int count) { rows(at.key, count, shape_.type.key); });
    for_each_run(head, [&](const Entry& at, int count) { rows(at.value, count, shape_.type.value); });
    for (int c = 0; c < shape_.state_columns; ++c) {
      for_each_run(head, [&](const Entry& at, int count) {
        from.read(first_of(at.state + as_size(c) * at.state_step, count), "a lane's state");
      });
    }
  }
  for (int head = 0; head < shape_.kv_heads; ++head) {
    load_merged_entries(from, head, followed[head]);
    check_positions(head, tokens, from);
    if (shape_.has_ranks()) rank(head);
  }
  if (summaries > 0) reserve_summaries(summaries);
  for (int block = 0; block < summaries; ++block) {
    for (int head = 0; head < shape_.kv_heads; ++head)
      from.read(std::span(summary(head, block), summary_bytes(shape_)), "a block's summary");
  }
  from.finish("a layer's lanes");
}

}  // namespace winnow::cache
