// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <ranges>
#include <vector>

#include "attention/cpu/amx.h"
#include "attention/cpu/attention.h"
#include "attention/cpu/bf16_product.h"
#include "attention/cpu/block.h"
#include "attention/cpu/block_shape.h"
#include "attention/cpu/record.h"
#include "base/as_size.h"
#include "base/cpu.h"

namespace winnow::attention {

bool supports(ComputeType compute_type) { return compute_type == ComputeType::f32 || multiplies_bf16(); }

namespace cpu {

namespace {

/// Returns n floats of a buffer that only grows.
float* floats(MemoryAccount& account, Buffer& buffer, std::size_t n) {
  if (buffer.size() < n * sizeof(float)) {
    buffer = Buffer();  // frees the old one first: both at once would be the peak
    buffer = Buffer(account, n * sizeof(float), "attention's work space");
  }
  return buffer.as<float>().data();
}

/// Makes a block retain some tiles, in memory provided by `take`.
template <class Take>
void retain(Block& b, const TileRange& tiles, const Take& take) {
  b.first_retained = tiles.first;
  b.end_retained = tiles.end;
  b.tile_weight = take(retained_floats(b.compute_type, b.queries, tiles.count()));
  b.retained = b.tile_weight == nullptr ? nullptr : b.tile_weight + as_size(b.queries) * as_size(tiles.count());
}

}  // namespace

struct Prefill::Impl {
  static constexpr std::size_t kNone = ~std::size_t{0};

  /// A work item, and the destination of its statistics. Its results do not depend on the number of threads.
  struct Item {
    int kv_head;
    TokenRange tokens;
    bool is_recorded = false;
    /// [request] offset of [unit][G][recorded keys] floats; kNone if the item has no requested rows.
    std::vector<std::size_t> partial = {};
  };
  /// A block in a thread's work space.
  struct Layout {
    Block block;
    Block past;  ///< the same queries over the past
    bool sees_past = false;
    float* mask = nullptr;
    float* weight = nullptr;
    std::size_t floats = 0;  ///< of work space
  };

  Impl(MemoryAccount& a, int threads, ComputeType p) : account(a), compute_type(p), work(as_size(threads)) {}

  void make_items();
  Item make_item(int kv_head, const TokenRange& tokens);
  void size_work_space();
  /// A block without work space: the tokens of an item from `from` on, as many as fit into a block.
  Block block_of(const Item& item, int from) const;
  /// The same queries over the past. REQUIRES: there is a past.
  Block past_of(const Block& block, const Item& item, int from) const;
  /// True if columns need the probabilities of the past, too.
  bool retains_past() const {
    return std::ranges::any_of(columns, [](const ColumnStatistics* o) { return needs_all_keys(o->request()); });
  }
  void see_past(const cache::PastRows* rows);
  /// `memory` may be null to get only the size.
  Layout layout(const Item& item, int from, float* memory) const;
  void run(const Item& item, float* memory);
  /// Tokens of the block that begins `from` tokens after the item's first one.
  int block_tokens(const Item& item, int from) const {
    using Rows = Division::Rows;
    return division.block_tokens(item.tokens, from, item.is_recorded ? Rows::recorded : Rows::plain);
  }
  /// Position in the prompt of the item's first token.
  int first_row(const Item& item) const { return first + item.tokens.first; }
  int units(const Item& item) const { return units_of(first_row(item), item.tokens.count); }
  /// Recorded keys among those that the item's last token sees.
  int recorded_keys(const Item& item) const {
    return std::max(0, std::min(recorded.end, last_seen(item)) - recorded.begin);
  }
  int last_seen(const Item& item) const { return leading[item.tokens.end() - 1]; }
  void begin(const Shape& layer, const cache::LayerScratch& rows, const float* queries, float* outputs,
             std::span<ColumnStatistics* const> wanted);
  void reduce(std::size_t index, int head);
  float* partial(const Item& item, std::size_t index) { return partials.as<float>().data() + item.partial[index]; }

  MemoryAccount& account;
  ComputeType compute_type;
  Shape shape;
  const cache::LayerScratch* scratch = nullptr;
  const float* q = nullptr;
  float* out = nullptr;
  int first = 0;  ///< position in the prompt of the chunk's first token
  int count = 0;
  std::vector<std::int32_t> leading;    ///< [count]
  std::vector<std::int32_t> own;        ///< [count] or empty
  std::vector<std::int32_t> seen_from;  ///< [count] or empty
  const cache::PastRows* past = nullptr;
  std::vector<std::int32_t> past_leading;  ///< [H_kv][count] or empty; like those of the prompt
  std::vector<std::int32_t> past_from;     ///< [H_kv][count] or empty
  float* logsums = nullptr;                ///< [count][H_q]
  KeyRange recorded;
  const float* row_scales = nullptr;  ///< [count]
  Division division;
  std::vector<ColumnStatistics*> columns;
  std::vector<Item> items;
  WorkQueue blocks;
  WorkQueue reductions;
  std::vector<Buffer> work;  ///< one per thread
  Buffer partials;
  std::size_t partial_floats = 0;
};

Prefill::Prefill(MemoryAccount& account, int max_threads, ComputeType compute_type)
    : impl_(std::make_unique<Impl>(account, max_threads, compute_type)) {}
Prefill::~Prefill() = default;

void Prefill::begin(const PromptQueries& queries, const cache::LayerScratch& scratch) {
  auto& s = *impl_;
  const auto& shape = queries.shape;
  s.row_scales = queries.row_scales;
  s.first = queries.first;
  s.count = queries.count;
  s.recorded = queries.recorded;
  s.leading.resize(as_size(s.count));
  std::iota(s.leading.begin(), s.leading.end(), s.first + 1);
  s.own.clear();
  s.seen_from.clear();
  if (shape.window > 0) {
    for (int i = s.first; i < s.first + s.count; ++i) s.seen_from.push_back(std::max(0, i + 1 - shape.window));
  }
  s.shape = shape;
  s.see_past(queries.past);
  s.begin(shape, scratch, queries.q, queries.out, queries.columns);
}

void Prefill::begin(const Shape& shape, const cache::LayerScratch& scratch, const float* q, float* out,
                    const VisibleRange& visible) {
  auto& s = *impl_;
  s.first = 0;
  s.count = static_cast<int>(visible.leading.size());
  s.recorded = {};
  s.leading.assign(visible.leading.begin(), visible.leading.end());
  s.own.assign(visible.own.begin(), visible.own.end());
  s.seen_from.assign(visible.from.begin(), visible.from.end());
  s.see_past(nullptr);
  s.begin(shape, scratch, q, out, {});
}

void Prefill::Impl::see_past(const cache::PastRows* rows) {
  past = rows;
  past_leading.clear();
  past_from.clear();
  for (int head = 0; past != nullptr && head < past->kv_heads(); ++head) {
    const int all = past->count(head);
    past_leading.insert(past_leading.end(), as_size(count), all);
    for (int i = first; shape.window > 0 && i < first + count; ++i)
      past_from.push_back(std::clamp(all + i + 1 - shape.window, 0, all));
  }
}

void Prefill::record_logsums(float* sums) { impl_->logsums = sums; }

void Prefill::Impl::begin(const Shape& layer, const cache::LayerScratch& rows, const float* queries, float* outputs,
                          std::span<ColumnStatistics* const> wanted) {
  shape = layer;
  scratch = &rows;
  q = queries;
  out = outputs;
  columns.assign(wanted.begin(), wanted.end());
  make_items();
  size_work_space();
  blocks.reset(static_cast<int>(items.size()));
  reductions.reset(partial_floats == 0 ? 0 : static_cast<int>(columns.size()) * shape.query_heads);
}

std::size_t Prefill::recording_bytes(const Shape& shape, const Chunk& chunk,
                                     std::span<const PromptColumns> observed) const {
  return cpu::recording_bytes(shape, impl_->compute_type, static_cast<int>(impl_->work.size()), chunk, observed);
}

void Prefill::Impl::make_items() {
  using Rows = Division::Rows;
  items.clear();
  partial_floats = 0;
  const int retained_past = past != nullptr && retains_past() ? *std::ranges::max_element(past_leading) : 0;
  division = Division(shape, compute_type, {first, count, retained_past, recorded},
                      columns.empty() ? Rows::plain : Rows::recorded);
  for (const auto& tokens : division.items()) {
    for (int head = 0; head < shape.kv_heads; ++head) items.push_back(make_item(head, tokens));
  }
}

Prefill::Impl::Item Prefill::Impl::make_item(int kv_head, const TokenRange& tokens) {
  Item item{kv_head, tokens};
  for (const ColumnStatistics* o : columns) {
    const bool seen = contains_any(o->request().rows, o->size(), first_row(item), tokens.count);
    item.partial.push_back(seen ? partial_floats : kNone);
    item.is_recorded |= seen;
    if (seen) partial_floats += as_size(units(item)) * as_size(shape.group()) * as_size(recorded_keys(item));
  }
  return item;
}

void Prefill::Impl::size_work_space() {
  std::size_t most = 0;
  for (const Item& item : items) {
    // The last block sees the most keys but may have the fewest tokens.
    for (int from = 0; from < item.tokens.count; from += block_tokens(item, from))
      most = std::max(most, layout(item, from, nullptr).floats);
  }
  for (auto& buffer : work) floats(account, buffer, most);
  if (partial_floats > 0) floats(account, partials, partial_floats);
}

Block Prefill::Impl::block_of(const Item& item, int from) const {
  const BlockShape form = block_shape(compute_type);
  Block b;
  b.token_stride = shape.query_heads * shape.head_dim;
  const std::ptrdiff_t offset = static_cast<std::ptrdiff_t>(item.tokens.first + from) * b.token_stride +
                                static_cast<std::ptrdiff_t>(item.kv_head) * shape.group() * shape.head_dim;
  b.q = q + offset;
  b.out = out + offset;
  b.tokens = block_tokens(item, from);
  b.group = shape.group();
  b.head_dim = shape.head_dim;
  b.scale = shape.scale;
  b.cap = shape.cap;
  if (!shape.sink_logits.empty())
    b.sink_logits = shape.sink_logits.data() + static_cast<std::ptrdiff_t>(item.kv_head) * shape.group();
  b.first_key = first + item.tokens.first + from;
  b.leading = leading.data() + item.tokens.first + from;
  if (!own.empty()) b.own = own.data() + item.tokens.first + from;
  if (!seen_from.empty()) b.from = seen_from.data() + item.tokens.first + from;
  if (logsums != nullptr) {
    b.logsum_stride = shape.query_heads;
    b.logsum = logsums + static_cast<std::ptrdiff_t>(item.tokens.first + from) * b.logsum_stride +
               item.kv_head * shape.group();
  }
  if (row_scales != nullptr) b.row_scales = row_scales + item.tokens.first + from;
  b.keys = scratch->keys(item.kv_head);
  b.values = scratch->values(item.kv_head);
  b.compute_type = compute_type;
  b.width = padded(shape.head_dim, form.depth);
  b.queries = padded(b.tokens * shape.group(), form.padding);
  b.strip = compute_type == ComputeType::f32 ? b.queries : kStrip;
  return b;
}

Block Prefill::Impl::past_of(const Block& block, const Item& item, int from) const {
  Block b = block;
  const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(item.kv_head) * count + item.tokens.first + from;
  b.keys = past->keys(item.kv_head);
  b.values = past->values(item.kv_head);
  b.leading = past_leading.data() + at;
  b.from = past_from.empty() ? nullptr : past_from.data() + at;
  b.own = nullptr;
  b.first_retained = b.end_retained = 0;
  return b;
}

Prefill::Impl::Layout Prefill::Impl::layout(const Item& item, int from, float* memory) const {
  Layout l;
  l.block = block_of(item, from);
  const auto take = [&l, memory](std::size_t n) {
    float* const here = memory == nullptr ? nullptr : memory + l.floats;
    l.floats += n;
    return here;
  };
  Block& b = l.block;
  const auto width = as_size(b.width);
  const auto n = as_size(b.queries);
  b.q_strips = take(n * width);
  b.o_strips = take(n * width);
  b.base = take(n);
  b.sum = take(n);
  b.limit = take(n);
  if (b.from != nullptr) b.first = take(n);
  l.mask = take(n);
  l.weight = take(n);
  b.tile = take(as_size(tile_keys(ComputeType::f32)) * width);
  b.work = reinterpret_cast<std::byte*>(take(work_bytes(b) / sizeof(float)));
  l.sees_past = past != nullptr && past->count(item.kv_head) > 0;
  if (l.sees_past) l.past = past_of(b, item, from);
  if (!item.is_recorded) return l;
  if (l.sees_past && retains_past()) retain(l.past, {0, l.past.tiles()}, take);
  retain(b, recorded_tiles(compute_type, recorded, b.visible_keys()), take);
  return l;
}

void Prefill::run(Worker worker) {
  auto& s = *impl_;
  float* const memory = s.work[worker.index].as<float>().data();
  for (int i = s.blocks.take(); i >= 0; i = s.blocks.take()) s.run(s.items[i], memory);
}

void Prefill::Impl::run(const Item& item, float* memory) {
  const AmxScope amx(compute_type);
  const int keys = recorded_keys(item);
  for (std::size_t index = 0; index < columns.size(); ++index) {
    if (item.partial[index] != kNone)
      std::fill_n(partial(item, index), static_cast<std::ptrdiff_t>(units(item)) * shape.group() * keys, 0.0F);
  }
  for (int from = 0; from < item.tokens.count; from += block_tokens(item, from)) {
    Layout l = layout(item, from, memory);
    if (l.sees_past) l.block.past = &l.past;
    run_block(l.block);
    for (std::size_t index = 0; index < columns.size(); ++index) {
      if (item.partial[index] != kNone)
        record_columns(l.block, *columns[index], l.mask, l.weight,
                       {recorded, partial(item, index), keys, shape.group(), first_row(item) / kSummedRows});
    }
  }
}

void Prefill::reduce(Worker /*worker*/) {
  auto& s = *impl_;
  for (int task = s.reductions.take(); task >= 0; task = s.reductions.take())
    s.reduce(as_size(task / s.shape.query_heads), task % s.shape.query_heads);
}

/// Unit after unit, from the chunk's first row on.
void Prefill::Impl::reduce(std::size_t index, int head) {
  ColumnStatistics& o = *columns[index];
  float* const into = o.head(head).data() + recorded.begin;
  for (const auto& item : items | std::views::reverse) {
    if (item.kv_head != head / shape.group() || item.partial[index] == kNone) continue;
    const int keys = recorded_keys(item);
    const float* from = partial(item, index) + static_cast<std::ptrdiff_t>(head % shape.group()) * keys;
    const int first_unit = first_row(item) / kSummedRows;
    for (int unit = 0; unit < units(item); ++unit, from += static_cast<std::ptrdiff_t>(shape.group()) * keys) {
      o.passed(head, std::max(first_row(item), (first_unit + unit) * kSummedRows));
      for (int key = 0; key < keys; ++key) {
        into[key] = o.request().reduction == Reduction::sum ? into[key] + from[key] : std::max(into[key], from[key]);
      }
    }
  }
  o.passed(head, first + count);
}

}  // namespace cpu

}  // namespace winnow::attention
