#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "attention/attention.h"
#include "attention/cpu/stretch.h"

namespace winnow::attention {

using cpu::kStretchKeys;

namespace {

/// Entries of a piece that make an item: followers, and the rows from the first one's founder to the last one's, are limited.
int stretch_of(const cache::LanePiece& piece, int first) {
  int count = std::min(kStretchKeys, piece.entries() - first);
  if (piece.founders == nullptr) return count;
  const auto* const from = piece.founders + first;
  while (from[count - 1] - from[0] >= kStretchKeys) --count;
  return count;
}

}  // namespace

struct DecodeAttention::Impl {
  /// A stretch of a read.
  struct Item {
    DecodeRead read;
    int first;  ///< entry within the read
    int count;
  };
  /// Whose queries a thread has at hand: turning them costs more than a short stretch.
  struct Turned {
    int row = -1;
    int kv_head = -1;
    std::int64_t shift = 0;
    bool operator==(const Turned&) const = default;
  };

  Impl(MemoryAccount& a, const Shape& s, const Rope& r, int threads) : account(a), shape(s), rope(r), turns(a, rope), threads_(threads) {
    const auto width = static_cast<std::size_t>(shape.head_dim);
    const auto group = static_cast<std::size_t>(shape.group());
    const auto rows = static_cast<std::size_t>(cpu::kTogether * cpu::decoded_width(shape.head_dim));
    const auto split = static_cast<std::size_t>(cpu::split_width(shape.head_dim, turns.pairs(), turns.width()));
    per_thread = 2 * group * kStretchKeys + rows + (group * (width + split) + 15) / 16 * 16;  // whole cache lines: threads share none
    per_item = group * (width + 2);
    work = Buffer(account, static_cast<std::size_t>(threads_) * per_thread * sizeof(float), "attention's work space");
  }

  static void set_rows(const Item& item, cpu::Stretch& stretch);
  void run_item(std::size_t index, float* memory, Turned& turned);
  void turn_queries(const Turned& want, float* queries) const;
  /// A stretch left exp(q·k - its own largest logit): brings that to the largest of all and divides by the sum.
  void finish_probabilities(std::size_t item, int g, float m, float share) {
    const Item& i = items[item];
    if (i.read.probabilities == nullptr) return;
    const float factor = share > 0 ? std::exp(part(item, g).m - m) * share : 0.0F;
    float* const at = i.read.probabilities + static_cast<std::ptrdiff_t>(g) * i.read.probabilities_stride + i.first;
    for (int key = 0; key < i.count; ++key) at[key] *= factor;
  }
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
  cpu::TurnTable turns;
  int threads_;
  const float* q = nullptr;
  float* out = nullptr;
  std::vector<Item> items;
  std::vector<std::size_t> first_item;  ///< [rows * H_kv + 1]
  std::size_t per_thread = 0;           ///< floats
  std::size_t per_item = 0;             ///< floats: o [G][d], m [G], d [G]
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
        const auto& piece = reads[next].piece;
        if (piece.turns != nullptr) s.turns.reserve(piece.turns_end);
        for (int first = 0; first < piece.entries();) {
          s.items.push_back({reads[next], first, stretch_of(piece, first)});
          first += s.items.back().count;
        }
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
  Impl::Turned turned;
  for (int i = s.stretches.take(); i >= 0; i = s.stretches.take()) s.run_item(static_cast<std::size_t>(i), memory, turned);
}

void DecodeAttention::Impl::turn_queries(const Turned& want, float* queries) const {
  const std::ptrdiff_t n = static_cast<std::ptrdiff_t>(shape.group()) * shape.head_dim;
  const float* const from = q + (static_cast<std::ptrdiff_t>(want.row) * shape.kv_heads + want.kv_head) * n;
  for (std::ptrdiff_t i = 0; i < n; ++i) queries[i] = from[i] * shape.scale;
  for (int g = 0; g < shape.group(); ++g) rope.shift(queries + static_cast<std::ptrdiff_t>(g) * shape.head_dim, want.shift);
}

void DecodeAttention::Impl::set_rows(const Item& item, cpu::Stretch& stretch) {
  const auto& piece = item.read.piece;
  int first = item.first;
  int count = item.count;
  if (piece.founders != nullptr) {
    stretch.founders = piece.founders + item.first;
    stretch.scales = piece.scales + item.first;
    stretch.followers = item.count;
    stretch.first_founder = stretch.founders[0];
    first = stretch.first_founder - piece.first_slot;
    count = stretch.founders[item.count - 1] - stretch.first_founder + 1;
  }
  stretch.keys = piece.keys.slice(first, count);
  stretch.values = piece.values.slice(first, count);
}

void DecodeAttention::Impl::run_item(std::size_t index, float* memory, Turned& turned) {
  const Item& item = items[index];
  const DecodeRead& read = item.read;
  const std::ptrdiff_t group = shape.group();
  cpu::Stretch stretch;
  stretch.logits = memory;
  stretch.weights = stretch.logits + group * kStretchKeys;
  stretch.rows = stretch.weights + group * kStretchKeys;
  float* const queries = stretch.rows + static_cast<std::ptrdiff_t>(cpu::kTogether) * cpu::decoded_width(shape.head_dim);
  if (const Turned want{read.row, read.kv_head, read.piece.query_shift}; want != turned) {
    turn_queries(want, queries);
    turned = want;
  }
  stretch.split = queries + group * shape.head_dim;
  stretch.q = queries;
  stretch.heads = shape.group();
  set_rows(item, stretch);
  if (read.piece.turns != nullptr) stretch.turns = read.piece.turns + item.first;
  stretch.table = &turns;
  if (read.probabilities != nullptr) stretch.capture = read.probabilities + item.first;
  stretch.capture_stride = read.probabilities_stride;
  stretch.o = parts.as<float>().data() + index * per_item;
  stretch.m = stretch.o + group * shape.head_dim;
  stretch.d = stretch.m + group;
  cpu::run_stretch(stretch);
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
      for (std::size_t item = s.first_item[t]; item < s.first_item[t + 1]; ++item) s.finish_probabilities(item, g, all.m, share);
    }
  }
}

}  // namespace winnow::attention
