// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "attention/attention.h"
#include "attention/cpu/stretch.h"
#include "base/as_size.h"

namespace winnow::attention {

using cpu::kStretchKeys;

namespace {

/// Merged entries that make an item: they, and the rows from the first one's centre to the last one's, are limited.
int stretch_of(const cache::LanePiece& piece, int first, int end) {
  int count = std::min(kStretchKeys, end - first);
  const auto* const from = piece.centres + first;
  while (from[count - 1] - from[0] >= kStretchKeys) --count;
  return count;
}

/// Row of a merged entry's centre.
int row_of(const cache::LanePiece& piece, int merged_entry) { return piece.centres[merged_entry] - piece.first_slot; }

/// Number of the first merged entry from `first` on whose centre is not before a row.
int merged_entry_of(const cache::LanePiece& piece, int first, int row) {
  const auto* const from = piece.centres + first;
  return static_cast<int>(std::lower_bound(from, piece.centres + piece.merged_entries, piece.first_slot + row) -
                          piece.centres);
}

/// Rows and their merged entries.
struct Both {
  int rows;
  int merged_entries;
};

/// Rows from `first` on that make an item with all their merged entries, of which `merged entry` is the first: as many
/// as fit. A row with more merged entries than fit is alone, with the first of them.
Both both_of(const cache::LanePiece& piece, int first, int merged_entry) {
  const int rows_left = piece.keys.count - first;
  int fit = 0;  // merged entries that fit with their centres and all rows before
  int beyond = std::min(piece.merged_entries - merged_entry, kStretchKeys) + 1;
  while (fit + 1 < beyond) {
    const int middle = (fit + beyond) / 2;
    (row_of(piece, merged_entry + middle - 1) - first + 1 + middle <= kStretchKeys ? fit : beyond) = middle;
  }
  if (merged_entry + fit == piece.merged_entries) return {std::min(rows_left, kStretchKeys - fit), fit};
  const int next = row_of(piece, merged_entry + fit) - first;  // does not fit with all its merged entries
  if (next == 0) return {1, fit};
  const int whole = merged_entry_of(piece, merged_entry, first + next) - merged_entry;
  return {std::min(next, kStretchKeys - whole), whole};
}

/// Whether merged entries are those of a read's rows and can be read with them, so that keys and values come from
/// memory once.
bool belong_together(const DecodeRead& merged_entries, const DecodeRead& rows) {
  const auto& f = merged_entries.piece;
  const auto& r = rows.piece;
  return f.centres != nullptr && r.centres == nullptr && r.rotate_to != nullptr && f.keys.data == r.keys.data &&
         f.keys.count == r.keys.count && f.query_shift == r.query_shift;
}

}  // namespace

struct DecodeAttention::Impl {
  /// A stretch of a read: rows, merged entries of rows, or rows and merged entries of theirs.
  struct Item {
    DecodeRead rows;  ///< whose keys and values are read
    int first = 0;    ///< entry within that read
    int own = 0;      ///< entries that are rows
    DecodeRead merged;
    int first_merged = 0;  ///< entry within that read
    int merged_entries = 0;
  };
  /// Whose queries a thread has at hand: rotating them costs more than a short stretch.
  struct Rotated {
    int row = -1;
    int kv_head = -1;
    std::int64_t shift = 0;
    bool operator==(const Rotated&) const = default;
  };

  Impl(MemoryAccount& a, int threads) : account(a), threads_(threads) {}

  void set_layer(const Shape& layer, const Rope& rope);
  cpu::RotationTable* table_of(const Rope& rope);
  void add_items(std::span<const DecodeRead> reads);
  void add_rows(const DecodeRead& rows, const DecodeRead* merged);
  void add_merged_entries(const DecodeRead& read, int first, int end);
  static void set_rows(const Item& item, cpu::Stretch& stretch);
  void run_item(std::size_t index, float* memory, Rotated& rotated);
  void rotate_queries(const Rotated& want, float* queries) const;
  /// A stretch left exp(q·k - its own largest logit): brings that to the largest of all and divides by the sum.
  void finish_probabilities(std::size_t item, int g, float m, float share) {
    const Item& i = items[item];
    const float factor = share > 0 && captures(i) ? std::exp(part(item, g).m - m) * share : 0.0F;
    scale_probabilities(i.rows, g, i.first, i.own, factor);
    scale_probabilities(i.merged, g, i.first_merged, i.merged_entries, factor);
  }
  static bool captures(const Item& i) { return i.rows.probabilities != nullptr || i.merged.probabilities != nullptr; }
  static void scale_probabilities(const DecodeRead& read, int g, int first, int count, float factor) {
    if (read.probabilities == nullptr) return;
    float* const at = read.probabilities + static_cast<std::ptrdiff_t>(g) * read.probabilities_stride + first;
    for (int entry = 0; entry < count; ++entry) at[entry] *= factor;
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
  std::vector<std::unique_ptr<cpu::RotationTable>> tables;  ///< one for each Rope so far
  cpu::RotationTable* rotate_to = nullptr;                  ///< the layer's
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

DecodeAttention::DecodeAttention(MemoryAccount& account, int max_threads)
    : impl_(std::make_unique<Impl>(account, max_threads)) {}
DecodeAttention::~DecodeAttention() = default;

void DecodeAttention::Impl::set_layer(const Shape& layer, const Rope& rope) {
  shape = layer;
  if (rotate_to == nullptr || &rotate_to->rope() != &rope) rotate_to = table_of(rope);
  const auto width = as_size(shape.head_dim);
  const auto group = as_size(shape.group());
  const auto rows = as_size(cpu::kTogether * cpu::decoded_width(shape.head_dim));
  const auto split = as_size(cpu::split_width(shape.head_dim, rotate_to->pairs(), rotate_to->width()));
  per_thread = 2 * group * kStretchKeys + rows +
               (group * (width + split) + 15) / 16 * 16;  // whole cache lines: threads share none
  per_item = group * (width + 2);
  const std::size_t bytes = as_size(threads_) * per_thread * sizeof(float);
  if (work.size() < bytes) work = Buffer(account, bytes, "attention's work space");
}

/// Layers share a Rope, so that there are few.
cpu::RotationTable* DecodeAttention::Impl::table_of(const Rope& rope) {
  for (const auto& table : tables) {
    if (&table->rope() == &rope) return table.get();
  }
  return tables.emplace_back(std::make_unique<cpu::RotationTable>(account, rope)).get();
}

void DecodeAttention::begin(const Shape& shape, const Rope& rope, std::span<const DecodeRead> reads, const float* q,
                            float* out, int rows) {
  auto& s = *impl_;
  s.set_layer(shape, rope);
  s.q = q;
  s.out = out;
  s.items.clear();
  s.first_item.assign(1, 0);
  std::size_t next = 0;
  for (int row = 0; row < rows; ++row) {
    for (int head = 0; head < s.shape.kv_heads; ++head) {
      const std::size_t first = next;
      while (next < reads.size() && reads[next].row == row && reads[next].kv_head == head) ++next;
      s.add_items(reads.subspan(first, next - first));
      s.first_item.push_back(s.items.size());
    }
  }
  const std::size_t bytes = s.items.size() * s.per_item * sizeof(float);
  if (s.parts.size() < bytes) s.parts = Buffer(s.account, bytes + bytes / 2, "partial attention states");
  s.stretches.reset(static_cast<int>(s.items.size()));
  s.merges.reset(rows * s.shape.kv_heads);
}

void DecodeAttention::Impl::add_items(std::span<const DecodeRead> reads) {
  const bool some_merged =
      std::any_of(reads.begin(), reads.end(), [](const DecodeRead& r) { return r.piece.centres != nullptr; });
  for (const auto& read : reads) {
    if (read.piece.rotate_to != nullptr) rotate_to->reserve(read.piece.rotate_to_end);
    if (!some_merged) {
      add_rows(read, nullptr);
      continue;
    }
    const bool own = read.piece.centres == nullptr;
    const auto other = std::find_if(reads.begin(), reads.end(), [&](const DecodeRead& r) {
      return own ? belong_together(r, read) : belong_together(read, r);
    });
    if (own) add_rows(read, other == reads.end() ? nullptr : &*other);
    if (!own && other == reads.end()) add_merged_entries(read, 0, read.piece.merged_entries);
  }
}

void DecodeAttention::Impl::add_rows(const DecodeRead& rows, const DecodeRead* merged) {
  const int count = rows.piece.keys.count;
  for (int first = 0; merged == nullptr && first < count; first += kStretchKeys) {
    items.push_back({rows, first, std::min(kStretchKeys, count - first), {}, 0, 0});
  }
  int merged_entry = 0;
  for (int first = 0; merged != nullptr && first < count;) {
    const Both both = both_of(merged->piece, first, merged_entry);
    items.push_back({rows, first, both.rows, *merged, merged_entry, both.merged_entries});
    first += both.rows;
    merged_entry += both.merged_entries;
    const int end =
        merged_entry_of(merged->piece, merged_entry, first);  // beyond what is left of a row with too many for one item
    add_merged_entries(*merged, merged_entry, end);
    merged_entry = end;
  }
}

void DecodeAttention::Impl::add_merged_entries(const DecodeRead& read, int first, int end) {
  while (first < end) {
    Item item{read, 0, 0, read, first, stretch_of(read.piece, first, end)};
    item.rows.probabilities = nullptr;
    items.push_back(item);
    first += item.merged_entries;
  }
}

void DecodeAttention::run(Worker worker) {
  auto& s = *impl_;
  float* const memory = s.work.as<float>().data() + as_size(worker.index) * s.per_thread;
  Impl::Rotated rotated;
  for (int i = s.stretches.take(); i >= 0; i = s.stretches.take()) s.run_item(as_size(i), memory, rotated);
}

void DecodeAttention::Impl::rotate_queries(const Rotated& want, float* queries) const {
  const std::ptrdiff_t n = static_cast<std::ptrdiff_t>(shape.group()) * shape.head_dim;
  const float* const from = q + (static_cast<std::ptrdiff_t>(want.row) * shape.kv_heads + want.kv_head) * n;
  for (std::ptrdiff_t i = 0; i < n; ++i) queries[i] = from[i] * shape.scale;
  for (int g = 0; g < shape.group(); ++g)
    rotate_to->rope().shift(queries + static_cast<std::ptrdiff_t>(g) * shape.head_dim, want.shift);
}

void DecodeAttention::Impl::set_rows(const Item& item, cpu::Stretch& stretch) {
  const auto& piece = item.rows.piece;
  int first = item.first;
  int count = item.own;
  stretch.own = item.own;
  if (piece.rotate_to != nullptr) stretch.rotate_to = piece.rotate_to + item.first;
  if (item.rows.probabilities != nullptr) stretch.capture = item.rows.probabilities + item.first;
  stretch.capture_stride = item.rows.probabilities_stride;
  if (item.merged_entries > 0) {
    const auto& merged = item.merged.piece;
    stretch.merged_entries = item.merged_entries;
    stretch.centres = merged.centres + item.first_merged;
    stretch.scales = merged.scales + item.first_merged;
    stretch.merged_rotate_to = merged.rotate_to + item.first_merged;
    if (item.own == 0) {
      first = stretch.centres[0] - merged.first_slot;
      count = stretch.centres[item.merged_entries - 1] - stretch.centres[0] + 1;
    }
    stretch.first_centre = merged.first_slot + first;
    if (item.merged.probabilities != nullptr) stretch.merged_capture = item.merged.probabilities + item.first_merged;
  }
  stretch.keys = piece.keys.slice(first, count);
  stretch.values = piece.values.slice(first, count);
}

void DecodeAttention::Impl::run_item(std::size_t index, float* memory, Rotated& rotated) {
  const Item& item = items[index];
  const DecodeRead& read = item.rows;
  const std::ptrdiff_t group = shape.group();
  cpu::Stretch stretch;
  stretch.logits = memory;
  stretch.weights = stretch.logits + group * kStretchKeys;
  stretch.rows = stretch.weights + group * kStretchKeys;
  float* const queries =
      stretch.rows + static_cast<std::ptrdiff_t>(cpu::kTogether) * cpu::decoded_width(shape.head_dim);
  if (const Rotated want{read.row, read.kv_head, read.piece.query_shift}; want != rotated) {
    rotate_queries(want, queries);
    rotated = want;
  }
  stretch.split = queries + group * shape.head_dim;
  stretch.q = queries;
  stretch.heads = shape.group();
  set_rows(item, stretch);
  stretch.table = rotate_to;
  stretch.o = parts.as<float>().data() + index * per_item;
  stretch.m = stretch.o + group * shape.head_dim;
  stretch.d = stretch.m + group;
  cpu::run_stretch(stretch);
}

void DecodeAttention::merge(Worker /*worker*/) {
  auto& s = *impl_;
  const auto dim = as_size(s.shape.head_dim);
  for (int task = s.merges.take(); task >= 0; task = s.merges.take()) {
    const auto t = as_size(task);
    for (int g = 0; g < s.shape.group(); ++g) {
      const std::size_t head = t * as_size(s.shape.group()) + as_size(g);
      const std::span<float> o(s.out + head * dim, dim);
      std::fill(o.begin(), o.end(), 0.0F);
      PartialState all{o, -std::numeric_limits<float>::infinity(), 0.0F};
      for (std::size_t item = s.first_item[t]; item < s.first_item[t + 1]; ++item)
        attention::merge(all, s.part(item, g));
      const float share = all.d > 0 ? 1.0F / all.d : 0.0F;
      for (float& x : o) x *= share;
      for (std::size_t item = s.first_item[t]; item < s.first_item[t + 1]; ++item)
        s.finish_probabilities(item, g, all.m, share);
    }
  }
}

}  // namespace winnow::attention
