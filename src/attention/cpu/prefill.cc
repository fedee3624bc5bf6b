#include <algorithm>
#include <vector>

#include "attention/attention.h"
#include "attention/cpu/block.h"

namespace winnow::attention {

using cpu::kLanePadding;
using cpu::kRegisterRows;
using cpu::kTileKeys;
using cpu::padded;

namespace {

/// Lanes of a block: enough that converting a tile of keys is paid for by many queries, few enough for the second-level cache.
constexpr int kLanes = 192;
/// Most floats of retained probabilities, for each thread: blocks with observed rows get narrower for longer prompts.
constexpr std::size_t kRetainedFloats = std::size_t{2} << 20U;

/// Memory that grows and is kept.
float* floats(MemoryAccount& account, Buffer& buffer, std::size_t n) {
  if (buffer.size() < n * sizeof(float)) {
    buffer = Buffer();  // give back first: both at once would be the peak
    buffer = Buffer(account, n * sizeof(float), "attention's work space");
  }
  return buffer.as<float>().data();
}

/// Whether any of rows [first, first + count) of a prompt is observed.
bool observes_any(const Observation& o, int first, int count) {
  for (int i = first; i < first + count; ++i) {
    if (o.what().rows.contains(i, o.size())) return true;
  }
  return false;
}

}  // namespace

struct PrefillAttention::Impl {
  /// One work item and where its part of the observations goes.
  struct Item {
    int kv_head;
    int first_token;
    int tokens;
    std::vector<std::size_t> partial;  ///< offset for each observation, in floats; kNone where nothing of this block is observed
  };
  static constexpr std::size_t kNone = ~std::size_t{0};

  Impl(MemoryAccount& a, const Shape& s, int threads) : account(a), shape(s), work(static_cast<std::size_t>(threads)) {}

  void make_items();
  void size_work_space();
  cpu::Block block(const Item& item, float* memory) const;
  void observe(const Item& item, const cpu::Block& block, std::size_t index);
  bool is_observed(const Item& item) const {
    return std::any_of(item.partial.begin(), item.partial.end(), [](std::size_t at) { return at != kNone; });
  }
  std::size_t floats_per_thread() const {
    const auto n = static_cast<std::size_t>(lanes);
    const auto width = static_cast<std::size_t>(padded(shape.head_dim, kRegisterRows));
    const auto tiles = static_cast<std::size_t>((first + count + kTileKeys - 1) / kTileKeys);
    const std::size_t keys = any_observed ? tiles * kTileKeys : kTileKeys;
    return n * (2 * width + 3 + keys + (any_observed ? tiles : 0)) + kTileKeys * width;
  }

  MemoryAccount& account;
  Shape shape;
  const cache::LayerScratch* scratch = nullptr;
  const float* q = nullptr;
  float* out = nullptr;
  int first = 0;
  int count = 0;
  int lanes = 0;
  bool any_observed = false;
  std::vector<Observation*> observations;
  std::vector<Item> items;
  WorkQueue blocks;
  WorkQueue reductions;
  std::vector<Buffer> work;  ///< one for each thread
  Buffer partials;
  std::size_t partial_floats = 0;
};

PrefillAttention::PrefillAttention(MemoryAccount& account, const Shape& shape, int max_threads)
    : impl_(std::make_unique<Impl>(account, shape, max_threads)) {}
PrefillAttention::~PrefillAttention() = default;

void PrefillAttention::begin(const cache::LayerScratch& scratch, const float* q, float* out, int first, int count,
                             std::span<Observation* const> observations) {
  auto& s = *impl_;
  s.scratch = &scratch;
  s.q = q;
  s.out = out;
  s.first = first;
  s.count = count;
  s.observations.assign(observations.begin(), observations.end());
  s.make_items();
  s.size_work_space();
  s.blocks.reset(static_cast<int>(s.items.size()));
  s.reductions.reset(s.partial_floats == 0 ? 0 : static_cast<int>(s.observations.size()) * s.shape.query_heads);
}

void PrefillAttention::Impl::make_items() {
  items.clear();
  partial_floats = 0;
  if (count == 0) return;
  any_observed = std::any_of(observations.begin(), observations.end(), [&](const Observation* o) { return observes_any(*o, first, count); });
  int most = kLanes;
  if (any_observed) {
    const auto fit = static_cast<int>(kRetainedFloats / static_cast<std::size_t>(first + count));
    most = std::clamp(fit / kLanePadding * kLanePadding, kLanePadding, kLanes);
  }
  const int tokens = std::clamp(most / shape.group(), 1, count);
  lanes = padded(tokens * shape.group(), kLanePadding);
  // The longest first: the last items then end at about the same time.
  for (int from = (count - 1) / tokens * tokens; from >= 0; from -= tokens) {
    for (int head = 0; head < shape.kv_heads; ++head) {
      Item item{head, from, std::min(tokens, count - from), {}};
      for (const Observation* o : observations) {
        const bool seen = observes_any(*o, first + from, item.tokens);
        item.partial.push_back(seen ? partial_floats : kNone);
        if (seen) partial_floats += static_cast<std::size_t>(shape.group()) * static_cast<std::size_t>(first + from + item.tokens);
      }
      items.push_back(std::move(item));
    }
  }
}

void PrefillAttention::Impl::size_work_space() {
  for (auto& buffer : work) floats(account, buffer, floats_per_thread());
  if (partial_floats > 0) floats(account, partials, partial_floats);
}

cpu::Block PrefillAttention::Impl::block(const Item& item, float* memory) const {
  const int width = padded(shape.head_dim, kRegisterRows);
  const auto take = [&memory](std::size_t n) {
    float* const here = memory;
    memory += n;
    return here;
  };
  cpu::Block b;
  b.token_stride = shape.query_heads * shape.head_dim;
  const std::ptrdiff_t offset = static_cast<std::ptrdiff_t>(item.first_token) * b.token_stride +
                                static_cast<std::ptrdiff_t>(item.kv_head) * shape.group() * shape.head_dim;
  b.q = q + offset;
  b.out = out + offset;
  b.tokens = item.tokens;
  b.group = shape.group();
  b.head_dim = shape.head_dim;
  b.scale = shape.scale;
  b.first_key = first + item.first_token;
  b.keys = scratch->keys(item.kv_head);
  b.values = scratch->values(item.kv_head);
  b.lanes = padded(item.tokens * shape.group(), kLanePadding);
  const auto n = static_cast<std::size_t>(b.lanes);
  b.q_lanes = take(n * static_cast<std::size_t>(width));
  b.o_lanes = take(n * static_cast<std::size_t>(width));
  b.max = take(n);
  b.sum = take(n);
  b.limit = take(n);
  b.tile = take(static_cast<std::size_t>(kTileKeys) * static_cast<std::size_t>(width));
  if (is_observed(item)) b.tile_max = take(n * static_cast<std::size_t>((b.visible_keys() + kTileKeys - 1) / kTileKeys));
  b.p = memory;
  return b;
}

void PrefillAttention::run(Worker worker) {
  auto& s = *impl_;
  float* const memory = s.work[static_cast<std::size_t>(worker.index)].as<float>().data();
  for (int i = s.blocks.take(); i >= 0; i = s.blocks.take()) {
    const auto& item = s.items[static_cast<std::size_t>(i)];
    const cpu::Block block = s.block(item, memory);
    cpu::run_block(block);
    for (std::size_t index = 0; index < s.observations.size(); ++index) {
      if (item.partial[index] != Impl::kNone) s.observe(item, block, index);
    }
  }
}

/// Column statistics of one block for one observation: [group][visible keys].
void PrefillAttention::Impl::observe(const Item& item, const cpu::Block& block, std::size_t index) {
  const Observation& o = *observations[index];
  const auto& rows = o.what().rows;
  const bool sums = o.what().reduction == Reduction::sum;
  float* out_column = partials.as<float>().data() + item.partial[index];
  std::vector<int> listed;
  if (rows.kind == ObservedRows::Kind::listed) {
    for (int t = 0; t < block.tokens; ++t) {
      if (rows.contains(block.first_key + t, o.size())) listed.push_back(t);
    }
  }
  const int begin = rows.kind == ObservedRows::Kind::last ? std::max(0, o.size() - rows.count - block.first_key) : 0;
  for (int g = 0; g < block.group; ++g) {
    for (int key = 0; key < block.visible_keys(); ++key) {
      const float* const p = block.p + static_cast<std::ptrdiff_t>(key) * block.lanes + static_cast<std::ptrdiff_t>(g) * block.tokens;
      float result = 0;
      if (rows.kind == ObservedRows::Kind::listed) {
        for (const int t : listed) result = sums ? result + p[t] : std::max(result, p[t]);
      } else {
        const int end = rows.kind == ObservedRows::Kind::band ? std::min(block.tokens, key + rows.count - block.first_key + 1) : block.tokens;
        if (end > begin) result = sums ? cpu::sum_of(p + begin, end - begin) : cpu::max_of(p + begin, end - begin);
      }
      *out_column++ = result;
    }
  }
}

void PrefillAttention::reduce(Worker /*worker*/) {
  auto& s = *impl_;
  for (int task = s.reductions.take(); task >= 0; task = s.reductions.take()) {
    const auto index = static_cast<std::size_t>(task / s.shape.query_heads);
    const int head = task % s.shape.query_heads;
    Observation& o = *s.observations[index];
    const auto into = o.head(head);
    for (const auto& item : s.items) {
      if (item.kv_head != head / s.shape.group() || item.partial[index] == Impl::kNone) continue;
      const int keys = s.first + item.first_token + item.tokens;
      const float* const from =
          s.partials.as<float>().data() + item.partial[index] + static_cast<std::ptrdiff_t>(head % s.shape.group()) * keys;
      for (int key = 0; key < keys; ++key) {
        const auto k = static_cast<std::size_t>(key);
        into[k] = o.what().reduction == Reduction::sum ? into[k] + from[key] : std::max(into[k], from[key]);
      }
    }
  }
}

}  // namespace winnow::attention
