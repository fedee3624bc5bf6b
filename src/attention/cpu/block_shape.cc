// SPDX-License-Identifier: Apache-2.0
#include "attention/cpu/block_shape.h"

#include <algorithm>
#include <bit>

#include "attention/cpu/record.h"
#include "base/as_size.h"

namespace winnow::attention::cpu {

namespace {

/// The largest number of tokens, up to `most`, that is a multiple of a unit or a power-of-two part of one.
int whole_tokens(int most) {
  return most >= kSummedRows ? most / kSummedRows * kSummedRows
                             : static_cast<int>(std::bit_floor(static_cast<unsigned>(most)));
}

}  // namespace

Division::Division(const Shape& shape, ComputeType compute_type, const Chunk& chunk, Rows rows)
    : compute_type_(compute_type), group_(shape.group()), chunk_(chunk), rows_(rows) {}

std::vector<TokenRange> Division::items() const {
  std::vector<TokenRange> out;
  int tokens = std::max(1, block_shape(compute_type_).queries / group_);
  int origin = 0;
  if (rows_ == Rows::recorded) {
    tokens = std::max(kSummedRows, whole_tokens(tokens));
    origin = -(chunk_.first % kSummedRows);
  }
  for (int from = origin; from < chunk_.count; from += tokens) {
    const int first = std::max(0, from);
    out.push_back({first, std::min(from + tokens, chunk_.count) - first});
  }
  std::ranges::reverse(out);
  return out;
}

int Division::most_tokens(int end, Rows rows) const {
  const BlockShape form = block_shape(compute_type_);
  if (rows == Rows::plain) return std::max(1, form.queries / group_);
  const int keys = std::max(1, std::min(chunk_.recorded.end, end) - chunk_.recorded.begin) + chunk_.past;
  return std::max(1,
                  std::clamp(form.retained / keys / form.padding * form.padding, form.padding, form.queries) / group_);
}

int Division::block_tokens(const TokenRange& item, int from, Rows rows) const {
  if (rows_ == Rows::plain) return item.count - from;
  const int begin = first_row(item) + from;
  const int last = first_row(item) + item.count;
  int step = whole_tokens(most_tokens(padded(last, kSummedRows), rows));
  if (step < kSummedRows) step = std::min(kSummedRows, whole_tokens(most_tokens(padded(begin + 1, kSummedRows), rows)));
  const int part = std::min(step, kSummedRows);
  int end = std::min(last, begin - begin % part + step);
  if (end - end % part > begin) end -= end % part;
  return end - begin;
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

std::size_t recording_bytes(const Shape& shape, ComputeType compute_type, int threads, const Chunk& chunk,
                            std::span<const PromptColumns> observed) {
  const BlockShape form = block_shape(compute_type);
  const bool retains_past = std::ranges::any_of(observed, needs_all_keys, &PromptColumns::request);
  const int past = retains_past ? chunk.past : 0;
  const int past_tiles = recorded_tiles(compute_type, {}, past).count();
  const Division division(shape, compute_type, {chunk.first, chunk.count, past, chunk.recorded},
                          Division::Rows::recorded);
  std::size_t partials = 0;
  std::size_t retained = 0;
  for (const auto& item : division.items()) {
    const int first = chunk.first + item.first;
    const auto seen = std::count_if(observed.begin(), observed.end(), [&](const PromptColumns& prompt) {
      return contains_any(prompt.request.rows, prompt.tokens, first, item.count);
    });
    if (seen == 0) continue;
    const int keys = std::max(0, std::min(chunk.recorded.end, first + item.count) - chunk.recorded.begin);
    partials += as_size(seen) * as_size(units_of(first, item.count)) * as_size(shape.query_heads) * as_size(keys);
    for (int from = 0; from < item.count;) {
      const int tokens = division.block_tokens(item, from, Division::Rows::recorded);
      from += tokens;
      const int tiles = recorded_tiles(compute_type, chunk.recorded, first + from).count() + past_tiles;
      const int queries = padded(tokens * shape.group(), form.padding);
      retained = std::max(retained, retained_floats(compute_type, queries, tiles));
    }
  }
  return (partials + as_size(threads) * retained) * sizeof(float);
}

}  // namespace winnow::attention::cpu
