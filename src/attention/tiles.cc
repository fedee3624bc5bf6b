// SPDX-License-Identifier: Apache-2.0
#include "attention/tiles.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "attention/cpu/softmax_sums.h"
#include "attention/products.h"
#include "base/as_size.h"

namespace winnow::attention {

namespace {

constexpr int kRowsTogether = 64;  // rows with logits in the cache

/// A state has more queries than a tile.
std::size_t kept_queries(const Tiles& tiles, int tokens) {
  return as_size(std::min(std::int64_t{tiles.length} + tiles.after, std::int64_t{tokens}));
}

}  // namespace

TileAttention::TileAttention(ColumnStatistics& statistics, const Tiles& tiles, int head_dim)
    : statistics_(statistics),
      tiles_(tiles),
      heads_(statistics.query_heads()),
      dim_(head_dim),
      queries_(kept_queries(tiles_, statistics.size()) * as_size(heads_) * as_size(head_dim)) {}

std::size_t TileAttention::bytes(const Shape& shape, const Tiles& tiles, int tokens) {
  return kept_queries(tiles, tokens) * as_size(shape.query_heads) * as_size(shape.head_dim) * sizeof(float);
}

/// A shorter prompt has ended `after` tokens before its last one.
int TileAttention::end_of_sums(const Tiles& tiles, int rows) {
  if (rows <= tiles.before) return rows;
  return tiles.before + std::max(0, rows - tiles.after - tiles.before) / tiles.length * tiles.length;
}

std::size_t TileAttention::state_bytes(const Shape& shape, const Tiles& tiles, int rows) {
  const int sums = end_of_sums(tiles, rows);
  return as_size(shape.query_heads) * (as_size(sums) + as_size(rows - sums) * as_size(shape.head_dim)) * sizeof(float);
}

void TileAttention::take_state(int rows, std::span<const std::byte> state) {
  const int sums = end_of_sums(tiles_, rows);
  const auto* from = reinterpret_cast<const float*>(state.data());
  for (int head = 0; head < heads_; ++head, from += sums) std::copy_n(from, sums, statistics_.head(head).data());
  const std::size_t size = as_size(rows - sums) * as_size(heads_) * as_size(dim_);
  std::copy_n(from, size, queries_.begin());
  taken_rows_ = rows;
}

void TileAttention::keep_state(int rows, std::span<std::byte> state) {
  const std::span to(reinterpret_cast<float*>(state.data()), state.size() / sizeof(float));
  kept_.emplace(rows, to);
  const int sums = end_of_sums(tiles_, rows);
  if (sums >= taken_rows_) return;
  // Queries that do not pass are those of the state with which this began.
  const auto width = static_cast<std::ptrdiff_t>(heads_) * dim_;
  std::copy_n(queries_.begin() + (sums - end_of_sums(tiles_, taken_rows_)) * width, (taken_rows_ - sums) * width,
              to.begin() + static_cast<std::ptrdiff_t>(heads_) * sums);
}

void TileAttention::write_sums() const {
  for (const auto& [rows, to] : kept_) {
    const int sums = end_of_sums(tiles_, rows);
    for (int head = 0; head < heads_; ++head)
      std::copy_n(statistics_.head(head).data(), sums, to.begin() + static_cast<std::ptrdiff_t>(head) * sums);
  }
}

void TileAttention::write_queries(const Chunk& chunk, int head) const {
  for (const auto& [rows, to] : kept_) {
    const int sums = end_of_sums(tiles_, rows);
    const auto begin = to.begin() + static_cast<std::ptrdiff_t>(heads_) * sums;
    for (int token = std::max(sums, chunk.first); token < std::min(rows, chunk.end); ++token)
      std::copy_n(query(chunk, head, token), dim_, begin + place(head, token - sums));
  }
}

void TileAttention::add(const float* q, const cache::LayerScratch& scratch, int first, int rows, Worker worker) {
  // Neighbouring heads, mostly of one KV head, whose keys are packed once for all of them.
  const Heads heads{part(heads_, worker.index, worker.count), part(heads_, worker.index + 1, worker.count)};
  const Chunk chunk{q, first, first + rows};
  for (int head = heads.begin; head < heads.end; ++head) write_queries(chunk, head);
  const int come = std::min(chunk.end, end());
  Tile tile = first_tile(chunk);
  if (tile.end <= chunk.first && !is_first(chunk)) return;  // after all tiles
  for (; tile.begin < come && tile.end <= come; tile = next(tile)) add_tile(chunk, scratch, heads, tile);
  for (int head = heads.begin; head < heads.end; ++head) keep_queries(chunk, head, tile);
}

void TileAttention::keep_queries(const Chunk& chunk, int head, const Tile& tile) {
  const int come = std::min(chunk.end, end());
  const int kept = tile.begin == first_query(chunk) ? chunk.first : tile.begin;
  for (int token = std::max(tile.begin, kept); token < come; ++token)
    std::copy_n(query(chunk, head, token), dim_, queries_.begin() + place(head, token - tile.begin));
}

TileAttention::Tile TileAttention::tile_of(int token) const {
  const int number = std::max(0, token - tiles_.before) / tiles_.length;
  const int begin = tiles_.before + number * tiles_.length;
  return {begin, std::max(begin, std::min(end(), begin + tiles_.length))};
}

const float* TileAttention::query(const Chunk& chunk, int head, int token) const {
  if (token < chunk.first) return queries_.data() + place(head, token - first_query(chunk));
  return chunk.q + (static_cast<std::ptrdiff_t>(token - chunk.first) * heads_ + head) * dim_;
}

void TileAttention::add_tile(const Chunk& chunk, const cache::LayerScratch& scratch, Heads heads, const Tile& tile) {
  const int group = heads_ / scratch.kv_heads();
  std::vector<float> rows(as_size(tile.end - tile.begin) * as_size(dim_));
  for (int head = heads.begin; head < heads.end;) {
    const auto keys = scratch.keys(head / group).slice(tile.begin, tile.end - tile.begin);
    for (int i = 0; i < keys.count; ++i)
      cache::decode_row(keys.type, keys.row(i), std::span(rows).subspan(as_size(i) * as_size(dim_), as_size(dim_)));
    const PackedRows packed(rows, dim_);
    for (const int end = std::min(heads.end, (head / group + 1) * group); head < end; ++head)
      add_rows(chunk, packed, head, tile);
  }
}

void TileAttention::add_rows(const Chunk& chunk, const PackedRows& keys, int head, const Tile& tile) {
  const auto dim = as_size(dim_);
  const int zeros = tiles_.rest == Tiles::Rest::zeros ? tiles_.length - keys.count() : 0;
  std::vector<float> rows(kRowsTogether * dim);
  std::vector<float> logits(kRowsTogether * as_size(keys.stride()));
  float* const sums = statistics_.head(head).data() + tile.begin;
  for (int first = 0; first < keys.count(); first += kRowsTogether) {
    const int some = std::min(kRowsTogether, keys.count() - first);
    for (int i = 0; i < some; ++i)
      std::copy_n(query(chunk, head, tile.begin + first + i), dim, rows.data() + as_size(i) * dim);
    keys.multiply(std::span(rows).first(as_size(some) * dim), logits);
    for (int i = 0; i < some; ++i) {
      float* const row = logits.data() + static_cast<std::ptrdiff_t>(i) * keys.stride();
      cpu::add_softmax({row, as_size(keys.count())}, zeros, sums);
    }
  }
  // A query of zeros attends equally to all.
  for (int j = 0; j < keys.count(); ++j) sums[j] += static_cast<float>(zeros) / static_cast<float>(tiles_.length);
}

}  // namespace winnow::attention
