// SPDX-License-Identifier: Apache-2.0
#include "attention/cpu/block_shape.h"

#include <algorithm>

#include "attention/cpu/record.h"
#include "base/as_size.h"

namespace winnow::attention {

namespace cpu {

int item_tokens(const Shape& shape, ComputeType compute_type, int count) {
  return std::clamp(block_shape(compute_type).queries / shape.group(), 1, count);
}

int recorded_block(const Shape& shape, const BlockShape& form, int keys, int tokens) {
  const int queries = std::clamp(form.retained / keys / form.padding * form.padding, form.padding, form.queries);
  const int most = std::max(1, queries / shape.group());
  if (most <= kQueryPadding) return most;
  // Whole vectors for each head, and equal blocks: these need less memory than full blocks and a short one, for which
  // keys would be packed for few queries.
  const int whole = most - most % kQueryPadding;
  const int blocks = padded(tokens, whole) / whole;
  return padded(padded(tokens, blocks) / blocks, kQueryPadding);
}

TileRange recorded_tiles(ComputeType compute_type, KeyRange recorded, int seen) {
  const int keys = tile_keys(compute_type);
  const int all = padded(seen, keys) / keys;
  const int first = std::min(recorded.begin / keys, all);
  return {first, std::max(first, std::min(all, (recorded.end - 1) / keys + 1))};
}

bool contains_any(const QueryRowSet& observed, int n, int first, int count) {
  for (int i = first; i < first + count; ++i) {
    if (observed.contains(i, n)) return true;
  }
  return false;
}

}  // namespace cpu

std::size_t recording_bytes(const Shape& shape, ComputeType compute_type, int threads, const Chunk& chunk,
                            std::span<const PromptColumns> observed) {
  const cpu::BlockShape form = cpu::block_shape(compute_type);
  const int end = chunk.first + chunk.count;
  const int step = cpu::item_tokens(shape, compute_type, chunk.count);
  const bool retains_past = std::ranges::any_of(observed, cpu::needs_all_keys, &PromptColumns::request);
  const int past = retains_past ? chunk.past : 0;
  const auto recorded = [&](int seen) {
    return std::max(0, std::min(chunk.recorded.end, seen) - chunk.recorded.begin);
  };
  const int tokens = cpu::recorded_block(shape, form, std::max(1, recorded(end)) + past, step);
  const int past_tiles = cpu::recorded_tiles(compute_type, {}, past).count();
  std::size_t partials = 0;
  std::size_t retained = 0;
  for (int from = chunk.first; from < end; from += step) {
    const int count = std::min(step, end - from);
    const auto seen = std::count_if(observed.begin(), observed.end(), [&](const PromptColumns& prompt) {
      return cpu::contains_any(prompt.request.rows, prompt.tokens, from, count);
    });
    partials += as_size(seen) * as_size(shape.query_heads) * as_size(recorded(from + count));
    const int queries = cpu::padded(std::min(count, tokens) * shape.group(), form.padding);
    const int tiles = cpu::recorded_tiles(compute_type, chunk.recorded, from + count).count() + past_tiles;
    if (seen > 0) retained = std::max(retained, cpu::retained_floats(compute_type, queries, tiles));
  }
  return (partials + as_size(threads) * retained) * sizeof(float);
}

}  // namespace winnow::attention
