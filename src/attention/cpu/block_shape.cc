// SPDX-License-Identifier: Apache-2.0
#include "attention/cpu/block_shape.h"

#include <algorithm>

#include "attention/cpu/observe.h"
#include "base/as_size.h"

namespace winnow::attention {

namespace cpu {

int item_tokens(const Shape& shape, ComputeType compute_type, int count) {
  return std::clamp(block_shape(compute_type).queries / shape.group(), 1, count);
}

int observed_block(const Shape& shape, const BlockShape& form, int keys, int tokens) {
  const int queries = std::clamp(form.retained / keys / form.padding * form.padding, form.padding, form.queries);
  const int most = std::max(1, queries / shape.group());
  if (most <= kQueryPadding) return most;
  // Whole vectors of each head, and equal blocks: as many need less memory, and a short one at the end would have keys
  // packed for few queries.
  const int whole = most - most % kQueryPadding;
  const int blocks = padded(tokens, whole) / whole;
  return padded(padded(tokens, blocks) / blocks, kQueryPadding);
}

bool observes_any(const ObservedRows& observed, int n, int first, int count) {
  for (int i = first; i < first + count; ++i) {
    if (observed.contains(i, n)) return true;
  }
  return false;
}

}  // namespace cpu

std::size_t observing_bytes(const Shape& shape, ComputeType compute_type, int threads, const Chunk& chunk,
                            std::span<const Observe> observed) {
  const cpu::BlockShape form = cpu::block_shape(compute_type);
  const int end = chunk.first + chunk.count;
  const int step = cpu::item_tokens(shape, compute_type, chunk.count);
  const bool retains_past = std::ranges::any_of(observed, cpu::needs_all_keys);
  const int past = retains_past ? chunk.past : 0;
  std::size_t partials = 0;
  std::size_t retained = 0;
  for (int from = chunk.first; from < end; from += step) {
    const int count = std::min(step, end - from);
    const auto seen = std::count_if(observed.begin(), observed.end(), [&](const Observe& what) {
      return cpu::observes_any(what.rows, chunk.tokens, from, count);
    });
    const auto keys = as_size(from + count);
    partials += as_size(seen) * as_size(shape.query_heads) * keys;
    const int queries =
        cpu::padded(std::min(count, cpu::observed_block(shape, form, end + past, step)) * shape.group(), form.padding);
    if (seen > 0) retained = std::max(retained, as_size(queries) * (keys + as_size(past)));
  }
  return (partials + as_size(threads) * retained) * sizeof(float);
}

}  // namespace winnow::attention
