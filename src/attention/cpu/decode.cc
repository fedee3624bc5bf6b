#include <algorithm>
#include <limits>
#include <vector>

#include "attention/attention.h"
#include "attention/cpu/stretch.h"

namespace winnow::attention {

using cpu::kStretchHeads;
using cpu::kStretchKeys;

namespace {

bool is_quantized(ElementType type) { return type == ElementType::q8_0 || type == ElementType::q4_0; }

/// Rows as the kernel reads them: quantized ones are decoded into `memory` [count][dim].
cache::Rows readable(const cache::Rows& rows, float* memory) {
  if (!is_quantized(rows.type)) return rows;
  const auto dim = static_cast<std::size_t>(rows.dim);
  for (int i = 0; i < rows.count; ++i) cache::decode_row(rows.type, rows.row(i), {memory + static_cast<std::size_t>(i) * dim, dim});
  return {reinterpret_cast<const std::byte*>(memory), dim * sizeof(float), rows.count, rows.dim, ElementType::f32};
}

}  // namespace

struct DecodeAttention::Impl {
  /// A stretch of a read.
  struct Item {
    DecodeRead read;
    int first;  ///< key within the read
    int count;
  };

  Impl(MemoryAccount& a, const Shape& s, const Rope& r, int threads) : account(a), shape(s), rope(r), threads_(threads) {
    const auto width = static_cast<std::size_t>(shape.head_dim);
    // Queries, logits, decoded keys, decoded values.
    per_thread = static_cast<std::size_t>(shape.group()) * width + kStretchHeads * kStretchKeys + 2 * kStretchKeys * width;
    per_item = static_cast<std::size_t>(shape.group()) * (width + 2);
    work = Buffer(account, static_cast<std::size_t>(threads_) * per_thread * sizeof(float), "attention's work space");
  }

  void run_item(std::size_t index, float* memory);
  PartialState part(std::size_t item, int g) {
    float* const at = parts.as<float>().data() + item * per_item;
    const auto group = static_cast<std::size_t>(shape.group());
    const auto width = static_cast<std::size_t>(shape.head_dim);
    const auto head = static_cast<std::size_t>(g);
    return {{at + head * width, width}, at[group * width + head], at[group * (width + 1) + head]};
  }

  MemoryAccount& account;
  Shape shape;
  Rope rope;
  int threads_;
  const float* q = nullptr;
  float* out = nullptr;
  std::vector<Item> items;
  std::vector<std::size_t> first_item;  ///< [rows * H_kv + 1]
  std::size_t per_thread = 0;  ///< floats
  std::size_t per_item = 0;    ///< floats: o [G][d], m [G], d [G]
  Buffer work;
  Buffer parts;
  WorkQueue stretches;
  WorkQueue merges;
};

DecodeAttention::DecodeAttention(MemoryAccount& account, const Shape& shape, const Rope& rope, int max_threads)
    : impl_(std::make_unique<Impl>(account, shape, rope, max_threads)) {}
DecodeAttention::~DecodeAttention() = default;

void DecodeAttention::begin(std::span<const DecodeRead> reads, const float* q, float* out, int rows) {
  auto& s = *impl_;
  s.q = q;
  s.out = out;
  s.items.clear();
  s.first_item.assign(1, 0);
  std::size_t next = 0;
  for (int row = 0; row < rows; ++row) {
    for (int head = 0; head < s.shape.kv_heads; ++head) {
      for (; next < reads.size() && reads[next].row == row && reads[next].kv_head == head; ++next) {
        const int keys = reads[next].piece.keys.count;
        for (int first = 0; first < keys; first += kStretchKeys) s.items.push_back({reads[next], first, std::min(kStretchKeys, keys - first)});
      }
      s.first_item.push_back(s.items.size());
    }
  }
  const std::size_t bytes = s.items.size() * s.per_item * sizeof(float);
  if (s.parts.size() < bytes) s.parts = Buffer(s.account, bytes + bytes / 2, "partial attention states");
  s.stretches.reset(static_cast<int>(s.items.size()));
  s.merges.reset(rows * s.shape.kv_heads);
}

void DecodeAttention::run(Worker worker) {
  auto& s = *impl_;
  float* const memory = s.work.as<float>().data() + static_cast<std::size_t>(worker.index) * s.per_thread;
  for (int i = s.stretches.take(); i >= 0; i = s.stretches.take()) s.run_item(static_cast<std::size_t>(i), memory);
}

void DecodeAttention::Impl::run_item(std::size_t index, float* memory) {
  const Item& item = items[index];
  const int group = shape.group();
  const int dim = shape.head_dim;
  float* const queries = memory;
  float* const logits = queries + static_cast<std::ptrdiff_t>(group) * dim;
  float* const keys = logits + kStretchHeads * kStretchKeys;
  float* const values = keys + static_cast<std::ptrdiff_t>(kStretchKeys) * dim;
  const float* const from = q + (static_cast<std::ptrdiff_t>(item.read.row) * shape.query_heads + static_cast<std::ptrdiff_t>(item.read.kv_head) * group) * dim;
  for (int g = 0; g < group; ++g) {
    float* const head = queries + static_cast<std::ptrdiff_t>(g) * dim;
    for (int i = 0; i < dim; ++i) head[i] = from[static_cast<std::ptrdiff_t>(g) * dim + i] * shape.scale;
    rope.shift(head, item.read.piece.query_shift);
  }
  cpu::Stretch stretch;
  stretch.keys = readable(item.read.piece.keys.slice(item.first, item.count), keys);
  stretch.values = readable(item.read.piece.values.slice(item.first, item.count), values);
  stretch.logits = logits;
  stretch.capture_stride = item.read.logits_stride;
  float* const state = parts.as<float>().data() + index * per_item;
  for (int g = 0; g < group; g += kStretchHeads) {
    stretch.heads = std::min(kStretchHeads, group - g);
    stretch.q = queries + static_cast<std::ptrdiff_t>(g) * dim;
    stretch.o = state + static_cast<std::ptrdiff_t>(g) * dim;
    stretch.m = state + static_cast<std::ptrdiff_t>(group) * dim + g;
    stretch.d = state + static_cast<std::ptrdiff_t>(group) * (dim + 1) + g;
    if (item.read.logits != nullptr) stretch.capture = item.read.logits + static_cast<std::ptrdiff_t>(g) * item.read.logits_stride + item.first;
    cpu::run_stretch(stretch);
  }
}

void DecodeAttention::merge(Worker /*worker*/) {
  auto& s = *impl_;
  const auto dim = static_cast<std::size_t>(s.shape.head_dim);
  for (int task = s.merges.take(); task >= 0; task = s.merges.take()) {
    const auto t = static_cast<std::size_t>(task);
    for (int g = 0; g < s.shape.group(); ++g) {
      const std::size_t head = t * static_cast<std::size_t>(s.shape.group()) + static_cast<std::size_t>(g);
      const std::span<float> o(s.out + head * dim, dim);
      std::fill(o.begin(), o.end(), 0.0F);
      PartialState all{o, -std::numeric_limits<float>::infinity(), 0.0F};
      for (std::size_t item = s.first_item[t]; item < s.first_item[t + 1]; ++item) attention::merge(all, s.part(item, g));
      const float share = all.d > 0 ? 1.0F / all.d : 0.0F;
      for (float& x : o) x *= share;
    }
  }
}

}  // namespace winnow::attention
