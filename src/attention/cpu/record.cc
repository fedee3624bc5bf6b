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

/// Rows of a stripe that are observed at a key.
struct RowsAtKey {
  int begin = 0;
  int end = 0;
  int keys = 1;  ///< consecutive keys at which these rows are observed
};

RowsAtKey rows_at(int key, const ColumnStatistics& statistics, const Stripe& s) {
  using Kind = QueryRowSet::Kind;
  const auto& rows = statistics.request().rows;
  const auto first = [&s](int row) { return std::clamp(row - s.first_row, 0, s.queries); };
  if (rows.kind == Kind::copies) {
    const int copy = key + statistics.copy_distance();
    return {first(copy - 1), first(copy + 1)};
  }
  const int end = rows.kind == Kind::band ? first(key + rows.count + 1) : s.queries;
  return {0, end, end < s.queries ? 1 : s.end - key};
}

void record_stripe(const ColumnStatistics& statistics, const Stripe& s, const float* weight) {
  Columns c;
  c.p = s.p;
  for (int key = s.begin; key < s.end; key += c.keys) {
    const auto rows = rows_at(key, statistics, s);
    c.keys = rows.keys;
    c.queries = rows.end - rows.begin;
    if (c.queries == 0) continue;
    c.first_query = s.first_query + rows.begin;
    c.weight = weight + rows.begin;
    c.first_key = key - s.first_of_tile;
    if (statistics.request().reduction == Reduction::sum) {
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
  const bool is_near = request.rows.kind == QueryRowSet::Kind::band || request.rows.kind == QueryRowSet::Kind::copies;
  const bool is_plain_sum = request.reduction == Reduction::sum && !is_near;
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
        record_stripe(statistics,
                      {begin, end, tile * keys, first_query + unit.first, block.first_key + unit.first, unit.count,
                       block.tile_of(tile), record.at(unit.unit, head, begin)},
                      weight + unit.first);
    }
  }
}

}  // namespace winnow::attention::cpu
