// SPDX-License-Identifier: Apache-2.0
#include "attention/cpu/record.h"

#include <algorithm>
#include <cstddef>

#include "attention/cpu/bf16_columns.h"
#include "attention/cpu/columns.h"
#include "attention/cpu/power.h"

namespace winnow::attention::cpu {

namespace {

/// Keys [begin, end) of one tile for the queries of one head.
struct Stripe {
  int begin;
  int end;
  int first_of_tile;
  int first_query;
  Retained p;
  float* out;  ///< for key `begin`
};

/// Number of first tokens of the block that are within `width` of `key`; later tokens are too far from it.
int tokens_within(const Block& b, int key, int width) { return std::clamp(key + width - b.first_key + 1, 0, b.tokens); }

void record_stripe(const Block& b, const ColumnRequest& request, const Stripe& s, const float* weight) {
  const bool band = request.rows.kind == QueryRowSet::Kind::band;
  Columns c;
  c.p = s.p;
  c.first_query = s.first_query;
  c.weight = weight;
  for (int key = s.begin; key < s.end; key += c.keys) {
    c.queries = band ? tokens_within(b, key, request.rows.count) : b.tokens;
    c.keys = c.queries < b.tokens ? 1 : s.end - key;
    c.first_key = key - s.first_of_tile;
    if (request.reduction == Reduction::sum) {
      add_to_sums(c, s.out + (key - s.begin));
    } else {
      raise_maxima(c, s.out + (key - s.begin));
    }
  }
}

/// Observes the rows of a block, each with its own power.
void record_powers(const Block& block, const ColumnStatistics& statistics, const Record& record) {
  const auto& power = statistics.request().power;
  const int first_row = statistics.size() - static_cast<int>(power.size());
  const int first_token = std::max(0, first_row - block.first_key);
  Powers p;
  p.block = &block;
  p.first_token = first_token;
  p.tokens = block.tokens - first_token;
  if (p.tokens <= 0) return;
  p.power = power.data() + (block.first_key + first_token - first_row);
  for (p.head = 0; p.head < block.group; ++p.head) add_powers(p, record.at(p.head, record.keys.begin));
}

}  // namespace

void record_columns(const Block& block, const ColumnStatistics& statistics, float* mask, float* weight,
                    const Record& record) {
  const ColumnRequest& request = statistics.request();
  if (!request.power.empty()) return record_powers(block, statistics, record);
  const bool scaled = request.scale != RowScale::one;
  for (int t = 0; t < block.tokens; ++t) {
    const int row = block.first_key + t;
    mask[t] = request.rows.contains(row, statistics.size()) ? request.weight_of(row, statistics.size()) : 0.0F;
    if (scaled) mask[t] *= block.row_scales[t];
  }
  // Keys before this one are too far from all rows of the block.
  const int nearest = request.rows.kind == QueryRowSet::Kind::band ? block.first_key - request.rows.count : 0;
  const int first = std::max(record.keys.begin, nearest);
  const int last = std::min(record.keys.end, block.visible_keys());
  const bool is_plain_sum = request.reduction == Reduction::sum && request.rows.kind != QueryRowSet::Kind::band;
  if (is_plain_sum && block.compute_type == ComputeType::bf16) return add_sums_bf16(block, mask, {first, last}, record);
  const int keys = tile_keys(block.compute_type);
  for (int tile = first / keys; tile * keys < last; ++tile) {
    const int begin = std::max(first, tile * keys);
    const int end = std::min(last, (tile + 1) * keys);
    for (int head = 0; head < block.group; ++head) {
      const int first_query = head * block.tokens;
      const float* const from = block.weight_of(tile) + first_query;
      for (int t = 0; t < block.tokens; ++t) weight[t] = mask[t] * from[t];
      record_stripe(block, request, {begin, end, tile * keys, first_query, block.tile_of(tile), record.at(head, begin)},
                    weight);
    }
  }
}

}  // namespace winnow::attention::cpu
