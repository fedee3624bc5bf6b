// SPDX-License-Identifier: Apache-2.0
#include "attention/cpu/record.h"

#include <algorithm>
#include <cstddef>

#include "attention/cpu/bf16_columns.h"
#include "attention/cpu/columns.h"
#include "attention/cpu/power.h"

namespace winnow::attention::cpu {

namespace {

/// Keys [begin, end) of one tile for some queries of one head.
struct Stripe {
  int begin;
  int end;
  int first_of_tile;
  int first_query;
  int first_row;
  int queries;
  Retained p;
  float* out;  ///< for key `begin`
};

/// Number of first rows of the stripe that are within `width` of `key`; later rows are too far from it.
int rows_within(const Stripe& s, int key, int width) { return std::clamp(key + width - s.first_row + 1, 0, s.queries); }

void record_stripe(const ColumnRequest& request, const Stripe& s, const float* weight) {
  const bool band = request.rows.kind == QueryRowSet::Kind::band;
  Columns c;
  c.p = s.p;
  c.first_query = s.first_query;
  c.weight = weight;
  for (int key = s.begin; key < s.end; key += c.keys) {
    c.queries = band ? rows_within(s, key, request.rows.count) : s.queries;
    c.keys = c.queries < s.queries ? 1 : s.end - key;
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
  for (const auto& unit : units_of(block)) {
    Powers p;
    p.block = &block;
    p.first_token = std::max(unit.first, first_row - block.first_key);
    p.tokens = unit.first + unit.count - p.first_token;
    if (p.tokens <= 0) continue;
    p.power = power.data() + (block.first_key + p.first_token - first_row);
    for (p.head = 0; p.head < block.group; ++p.head) add_powers(p, record.at(unit.unit, p.head, record.keys.begin));
  }
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
  const auto units = units_of(block);
  const int keys = tile_keys(block.compute_type);
  for (int tile = first / keys; tile * keys < last; ++tile) {
    const int begin = std::max(first, tile * keys);
    const int end = std::min(last, (tile + 1) * keys);
    for (int head = 0; head < block.group; ++head) {
      const int first_query = head * block.tokens;
      const float* const from = block.weight_of(tile) + first_query;
      for (int t = 0; t < block.tokens; ++t) weight[t] = mask[t] * from[t];
      for (const auto& unit : units)
        record_stripe(request,
                      {begin, end, tile * keys, first_query + unit.first, block.first_key + unit.first, unit.count,
                       block.tile_of(tile), record.at(unit.unit, head, begin)},
                      weight + unit.first);
    }
  }
}

}  // namespace winnow::attention::cpu
