// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "attention/cpu/attention.h"
#include "attention/cpu/decode_items.h"
#include "attention/cpu/stretch.h"
#include "attention/rotation.h"
#include "base/as_size.h"
#include "cache/lane_storage.h"

namespace winnow::attention::cpu {

struct Decode::Impl {
  /// The rotated queries in a thread's work space: rotating costs more than a short stretch.
  struct Rotated {
    int row = -1;
    int kv_head = -1;
    std::int64_t shift = 0;
    bool operator==(const Rotated&) const = default;
  };

  Impl(MemoryAccount& a, int threads) : account(a), threads_(threads) {}

  void set_layer(const Shape& layer, const Rope& rope);
  RotationTable* table_of(const Rope& rope);
  void run_item(std::size_t index, float* memory, Rotated& rotated);
  void rotate_queries(const Rotated& want, float* queries) const;
  /// Rescales exp(q·k - m) from a stretch's own largest logit to the overall one, and divides by the sum.
  void finish_probabilities(std::size_t item, int g, float m, float share) {
    const float factor = share > 0 && items[item].captures() ? std::exp(part(item, g).m - m) * share : 0.0F;
    items[item].scale_probabilities(g, factor);
  }
  /// State of a query head before any entry: empty, or the sink, whose value is 0.
  PartialState nothing_but_the_sink(std::span<float> o, int head) const {
    std::fill(o.begin(), o.end(), 0.0F);
    const auto sink = shape.sink_of(head);
    if (sink.empty()) return {o, -std::numeric_limits<float>::infinity(), 0.0F};
    return {o, sink.front(), 1.0F};
  }
  PartialState part(std::size_t item, int g) {
    float* const at = parts.as<float>().data() + item * per_item;
    const auto group = as_size(shape.group());
    const auto width = as_size(shape.head_dim);
    const auto head = as_size(g);
    return {{at + head * width, width}, at[group * width + head], at[group * (width + 1) + head]};
  }

  MemoryAccount& account;
  Shape shape;
  std::vector<std::unique_ptr<RotationTable>> tables;  ///< one for each Rope so far
  RotationTable* rotate_to = nullptr;                  ///< the layer's
  int threads_;
  const float* q = nullptr;
  float* out = nullptr;
  std::vector<DecodeItem> items;
  std::vector<std::size_t> first_item;  ///< [rows * H_kv + 1]
  std::size_t per_thread = 0;           ///< floats
  std::size_t per_item = 0;             ///< floats: o [G][d], m [G], d [G]
  Buffer work;
  Buffer parts;
  WorkQueue stretches;
  WorkQueue merges;
};

Decode::Decode(MemoryAccount& account, int max_threads) : impl_(std::make_unique<Impl>(account, max_threads)) {}
Decode::~Decode() = default;

void Decode::Impl::set_layer(const Shape& layer, const Rope& rope) {
  shape = layer;
  if (rotate_to == nullptr || &rotate_to->rope() != &rope) rotate_to = table_of(rope);
  const auto width = as_size(shape.head_dim);
  const auto group = as_size(shape.group());
  const auto rows = as_size(kTogether * decoded_width(shape.head_dim));
  const auto split = as_size(split_width(shape.head_dim, rotate_to->pairs(), rotate_to->width()));
  per_thread = 2 * group * kStretchKeys + rows +
               (group * (width + split) + 15) / 16 * 16;  // whole cache lines, so that threads share none
  per_item = group * (width + 2);
  const std::size_t bytes = as_size(threads_) * per_thread * sizeof(float);
  if (work.size() >= bytes) return;
  work = Buffer();  // frees the old one first: both at once would be the peak
  work = Buffer(account, bytes, "attention's work space");
}

/// Layers share a Rope, so there are few tables.
RotationTable* Decode::Impl::table_of(const Rope& rope) {
  for (const auto& table : tables) {
    if (&table->rope() == &rope) return table.get();
  }
  return tables.emplace_back(std::make_unique<RotationTable>(account, rope)).get();
}

void Decode::begin(const Shape& shape, const Rope& rope, std::span<const DecodeRead> reads, const float* q, float* out,
                   int rows) {
  auto& s = *impl_;
  s.set_layer(shape, rope);
  s.q = q;
  s.out = out;
  s.items.clear();
  s.first_item.assign(1, 0);
  for (const auto& read : reads) {
    if (read.run.rotate_to != nullptr) s.rotate_to->reserve(read.run.rotate_to_end);
  }
  std::size_t next = 0;
  for (int row = 0; row < rows; ++row) {
    for (int head = 0; head < s.shape.kv_heads; ++head) {
      const std::size_t first = next;
      while (next < reads.size() && reads[next].row == row && reads[next].kv_head == head) ++next;
      add_items(reads.subspan(first, next - first), s.items);
      s.first_item.push_back(s.items.size());
    }
  }
  const std::size_t bytes = s.items.size() * s.per_item * sizeof(float);
  if (s.parts.size() < bytes) {
    s.parts = Buffer();
    s.parts = Buffer(s.account, bytes + bytes / 2, "partial attention states");
  }
  s.stretches.reset(static_cast<int>(s.items.size()));
  s.merges.reset(rows * s.shape.kv_heads);
}

void Decode::run(Worker worker) {
  auto& s = *impl_;
  float* const memory = s.work.as<float>().data() + as_size(worker.index) * s.per_thread;
  Impl::Rotated rotated;
  for (int i = s.stretches.take(); i >= 0; i = s.stretches.take()) s.run_item(as_size(i), memory, rotated);
}

void Decode::Impl::rotate_queries(const Rotated& want, float* queries) const {
  const std::ptrdiff_t n = static_cast<std::ptrdiff_t>(shape.group()) * shape.head_dim;
  const float* const from = q + (static_cast<std::ptrdiff_t>(want.row) * shape.kv_heads + want.kv_head) * n;
  const float scale = shape.cap > 0 ? shape.scale / shape.cap : shape.scale;
  for (std::ptrdiff_t i = 0; i < n; ++i) queries[i] = from[i] * scale;
  for (int g = 0; g < shape.group(); ++g)
    rotate_to->rope().shift(queries + static_cast<std::ptrdiff_t>(g) * shape.head_dim, want.shift);
}

void Decode::Impl::run_item(std::size_t index, float* memory, Rotated& rotated) {
  const DecodeItem& item = items[index];
  const DecodeRead& read = item.rows;
  const std::ptrdiff_t group = shape.group();
  Stretch stretch;
  stretch.logits = memory;
  stretch.weights = stretch.logits + group * kStretchKeys;
  stretch.rows = stretch.weights + group * kStretchKeys;
  float* const queries = stretch.rows + static_cast<std::ptrdiff_t>(kTogether) * decoded_width(shape.head_dim);
  if (const Rotated want{read.row, read.kv_head, read.run.query_shift}; want != rotated) {
    rotate_queries(want, queries);
    rotated = want;
  }
  stretch.split = queries + group * shape.head_dim;
  stretch.q = queries;
  stretch.heads = shape.group();
  stretch.cap = shape.cap;
  item.describe(stretch);
  stretch.table = rotate_to;
  stretch.o = parts.as<float>().data() + index * per_item;
  stretch.m = stretch.o + group * shape.head_dim;
  stretch.d = stretch.m + group;
  run_stretch(stretch);
}

void Decode::merge(Worker /*worker*/) {
  auto& s = *impl_;
  const auto dim = as_size(s.shape.head_dim);
  for (int task = s.merges.take(); task >= 0; task = s.merges.take()) {
    const auto t = as_size(task);
    for (int g = 0; g < s.shape.group(); ++g) {
      const std::size_t head = t * as_size(s.shape.group()) + as_size(g);
      const std::span<float> o(s.out + head * dim, dim);
      PartialState all = s.nothing_but_the_sink(o, static_cast<int>(head) % s.shape.query_heads);
      for (std::size_t item = s.first_item[t]; item < s.first_item[t + 1]; ++item)
        attention::merge(all, s.part(item, g));
      const float share = all.d > 0 ? 1.0F / all.d : 0.0F;
      for (float& x : o) x *= share;
      for (std::size_t item = s.first_item[t]; item < s.first_item[t + 1]; ++item)
        s.finish_probabilities(item, g, all.m, share);
    }
  }
}

/// Each run consists of items; a tail block is a run, and merged entries are runs of their own.
std::size_t Decode::bytes(const Shape& shape, int rows, const LaneSize& lane, const Rope* rope, int end) const {
  const auto items = as_size(lane.block / kStretchKeys + lane.others / cache::LaneStorage::kTailBlock + 2);
  const std::size_t parts =
      as_size(rows) * as_size(shape.query_heads) * items * as_size(shape.head_dim + 2) * sizeof(float);
  return parts + parts / 2 + (rope == nullptr ? 0 : RotationTable::bytes(*rope, end));
}

}  // namespace winnow::attention::cpu
