// SPDX-License-Identifier: Apache-2.0
// Times of the kernels on a GPU for the heads of Llama-3.1-8B (32 query, 8 KV, 128 elements), beside lower bounds by
// bytes and operations. Prints a line of JSON after each measurement, with the median, minimum and maximum of its runs.
//   kernel_times [WORD]   only measurements whose name begins so
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "device/kernels.h"
#include "measuring.h"

namespace winnow::device {
namespace {

constexpr int kHeads = 32;
constexpr int kKvHeads = 8;
constexpr int kDim = 128;
constexpr int kChunk = 4096;

void measure_copy(Clock& clock) {
  if (!clock.wants("copy")) return;
  constexpr std::size_t kBytes = std::size_t{2} << 30U;
  const Memory from(kBytes);
  const Memory to(kBytes);
  from.randomized(4);
  clock.measure("copy 2 GiB", {0, 2.0 * kBytes}, [&] {
    check(cudaMemcpyAsync(to.as<void>(), from.as<void>(), kBytes, cudaMemcpyDeviceToDevice, nullptr));
  });
}

struct LayerShape {
  int tokens, heads, kv_heads, dim;
  Element element = Element::bf16;

  std::string name() const {
    return std::to_string(tokens) + " heads " + std::to_string(heads) + "/" + std::to_string(kv_heads) + " d " +
           std::to_string(dim) + (element == Element::f16 ? " f16" : " bf16");
  }
  /// Operations of the products with keys, over all chunks.
  double half() const { return 2.0 * heads * dim * tokens * (tokens + 1.0) / 2; }
};

/// The scratch of a layer and a chunk's tensors.
class Layer {
 public:
  explicit Layer(const LayerShape& shape)
      : s_(shape),
        row_(std::size_t(shape.heads) * shape.dim),
        rows_(std::size_t(shape.tokens) * shape.kv_heads * shape.dim),
        q_(kChunk * row_ * 4),
        out_(kChunk * row_ * 4),
        packed_(kChunk * row_ * 2),
        lse_(std::size_t{kChunk} * shape.heads * 4),
        keys_(rows_ * 2),
        values_(rows_ * 2),
        columns_(std::size_t(shape.tokens) * shape.heads * 4) {
    q_.randomized(4);
    keys_.randomized(2);
    values_.randomized(2);
    check(cudaMemset(columns_.as<void>(), 0, std::size_t(shape.tokens) * shape.heads * 4));
  }

  PrefillTask prefill(int first) const {
    return {.q = q_.as<float>(),
            .out = out_.as<float>(),
            .lse = lse_.as<float>(),
            .packed = packed_.as<void>(),
            .keys = keys_.as<void>(),
            .values = values_.as<void>(),
            .sinks = nullptr,
            .past_keys = nullptr,
            .past_values = nullptr,
            .past_first = nullptr,
            .element = s_.element,
            .first = first,
            .count = std::min(kChunk, s_.tokens - first),
            .heads = s_.heads,
            .kv_heads = s_.kv_heads,
            .dim = s_.dim,
            .capacity = s_.tokens,
            .window = 0,
            .scale = 1 / std::sqrt(static_cast<float>(s_.dim)),
            .cap = 0};
  }
  ObserveTask observe(int first, int observed) const {
    const int count = std::min(kChunk, s_.tokens - first);
    return {.packed = packed_.as<void>(),
            .lse = lse_.as<float>(),
            .keys = keys_.as<void>(),
            .rows = nullptr,
            .weights = nullptr,
            .columns = columns_.as<float>(),
            .element = s_.element,
            .reduction = Reduction::sum,
            .observed = std::min(observed, count),
            .first = first,
            .count = count,
            .heads = s_.heads,
            .kv_heads = s_.kv_heads,
            .dim = s_.dim,
            .capacity = s_.tokens,
            .begin = 0,
            .end = s_.tokens,
            .stride = s_.tokens,
            .reach = 0,
            .cap = 0};
  }

 private:
  LayerShape s_;
  std::size_t row_;
  std::size_t rows_;
  Memory q_, out_, packed_, lse_, keys_, values_, columns_;
};

void measure_prompt(Clock& clock, const LayerShape& shape) {
  const std::string prefill = "prefill " + shape.name();
  const std::string all = "observe all " + shape.name();
  const std::string last = "observe last 64 " + shape.name();
  if (!clock.wants(prefill) && !clock.wants(all) && !clock.wants(last)) return;
  const Layer layer(shape);
  const Kernels& kernels = *winnow_kernels();
  const auto chunks = [&](const std::function<void(int)>& run) {
    return [=] {
      for (int first = 0; first < shape.tokens; first += kChunk) run(first);
    };
  };
  const int last_chunk = (shape.tokens - 1) / kChunk * kChunk;
  clock.measure(prefill, {2 * shape.half(), 0},
                chunks([&](int first) { check(kernels.prefill(layer.prefill(first), nullptr)); }));
  check(kernels.prefill(layer.prefill(last_chunk), nullptr));
  clock.measure(all, {shape.half(), 0},
                chunks([&](int first) { check(kernels.observe(layer.observe(first, kChunk), nullptr)); }));
  clock.measure(last,
                {2.0 * shape.heads * shape.dim * 64 * shape.tokens, 2.0 * shape.kv_heads * shape.dim * shape.tokens},
                [&] { check(kernels.observe(layer.observe(last_chunk, 64), nullptr)); });
}

struct StepShape {
  int entries;
  int rows;
  Element element = Element::bf16;
  int of_item = 256;
  bool probabilities = false;
  bool turned = false;  ///< turn keys when they are read

  std::string name() const {
    return "decode " + std::to_string(entries) + " batch " + std::to_string(rows) +
           (element == Element::q8_0   ? " q8_0"
            : element == Element::q4_0 ? " q4_0"
                                       : " bf16") +
           (probabilities ? " probabilities" : "") + (turned ? " turned" : "") +
           (of_item == 256 ? "" : " items of " + std::to_string(of_item));
  }
  std::size_t row_bytes() const {
    return element == Element::q8_0 ? kDim : element == Element::q4_0 ? kDim / 2 : kDim * 2;
  }
};

/// Lanes of `rows` sequences, one block each.
class Step {
 public:
  explicit Step(const StepShape& shape)
      : s_(shape),
        lanes_(std::size_t(shape.rows) * kKvHeads),
        keys_(lanes_ * shape.entries * shape.row_bytes()),
        values_(lanes_ * shape.entries * shape.row_bytes()),
        scales_(lanes_ * shape.entries * kScaleBytes),
        weights_(shape.probabilities ? lanes_ * shape.entries * kGroup * 4 : 4),
        positions_(std::size_t(shape.entries) * 4),
        coarse_((std::size_t(shape.entries) / Angles::kFine + 1) * kDim * 4),
        fine_(std::size_t{Angles::kFine} * kDim * 4),
        q_(std::size_t(shape.rows) * kHeads * kDim * 4),
        out_(std::size_t(shape.rows) * kHeads * kDim * 4),
        lse_(std::size_t(shape.rows) * kHeads * 4),
        items_(lanes_ * of_lane() * sizeof(DecodeItem)),
        first_((lanes_ + 1) * 4),
        partial_(lanes_ * of_lane() * kGroup * (kDim + 2) * 4) {
    keys_.randomized(2);
    values_.randomized(2);
    coarse_.randomized(4);
    fine_.randomized(4);
    q_.randomized(4);
    check(cudaMemset(scales_.as<void>(), 0x20, lanes_ * shape.entries * kScaleBytes));
    std::vector<std::int32_t> positions;
    for (int i = 0; i < shape.entries; ++i) positions.push_back(i);
    positions_.put(positions);
    make_items();
  }

  DecodeTask task() const {
    return {.q = q_.as<float>(),
            .out = out_.as<float>(),
            .lse = s_.probabilities ? lse_.as<float>() : nullptr,
            .items = items_.as<DecodeItem>(),
            .first_item = first_.as<std::int32_t>(),
            .partial = partial_.as<float>(),
            .sinks = nullptr,
            .angles = {coarse_.as<float>(), fine_.as<float>(), kDim / 2, kDim / 2, 1},
            .listed = s_.turned ? 1 : 0,
            .key_element = s_.element,
            .value_element = s_.element,
            .item_count = static_cast<std::int32_t>(lanes_) * of_lane(),
            .rows = s_.rows,
            .heads = kHeads,
            .kv_heads = kKvHeads,
            .dim = kDim,
            .scale = 1 / std::sqrt(static_cast<float>(kDim)),
            .cap = 0};
  }
  double bytes() const {
    return 2.0 * lanes_ * s_.entries * (s_.row_bytes() + (s_.element == Element::bf16 ? 0 : kScaleBytes));
  }

 private:
  static constexpr int kGroup = kHeads / kKvHeads;
  static constexpr std::size_t kScaleBytes = kDim / 32 * 2;

  int of_lane() const { return (s_.entries + s_.of_item - 1) / s_.of_item; }
  void make_items() const {
    std::vector<DecodeItem> items;
    std::vector<std::int32_t> first{0};
    for (std::size_t lane = 0; lane < lanes_; ++lane) {
      for (int at = 0; at < s_.entries; at += s_.of_item) items.push_back(item(lane, at));
      first.push_back(static_cast<std::int32_t>(items.size()));
    }
    items_.put(items);
    first_.put(first);
  }
  DecodeItem item(std::size_t lane, int at) const {
    const std::size_t entry = lane * s_.entries + at;
    return {.keys = keys_.as<std::uint8_t>() + entry * s_.row_bytes(),
            .values = values_.as<std::uint8_t>() + entry * s_.row_bytes(),
            .key_scales = scales_.as<std::uint8_t>() + entry * kScaleBytes,
            .value_scales = scales_.as<std::uint8_t>() + entry * kScaleBytes,
            .probabilities = s_.probabilities ? weights_.as<float>() + lane * s_.entries * kGroup + at : nullptr,
            .positions = s_.turned ? positions_.as<std::int32_t>() + at : nullptr,
            .rows = nullptr,
            .factors = nullptr,
            .row = static_cast<std::int32_t>(lane) / kKvHeads,
            .kv_head = static_cast<std::int32_t>(lane) % kKvHeads,
            .count = std::min(s_.of_item, s_.entries - at),
            .stride = s_.entries,
            .first_row = 0,
            .shift = 0};
  }

  StepShape s_;
  std::size_t lanes_;
  Memory keys_, values_, scales_, weights_, positions_, coarse_, fine_, q_, out_, lse_, items_, first_, partial_;
};

void measure_step(Clock& clock, const StepShape& shape) {
  if (!clock.wants(shape.name())) return;
  const Step step(shape);
  clock.measure(shape.name(), {0, step.bytes()}, [&] { check(winnow_kernels()->decode(step.task(), nullptr)); });
}

struct StoreShape {
  const char* name;
  Element source;
  Element element;
  int tokens;
  bool listed = false;  ///< rows are given by a list
  bool turned = false;
};

std::size_t bytes_of_row(Element element) {
  return element == Element::f32    ? kDim * 4
         : element == Element::q8_0 ? kDim
         : element == Element::q4_0 ? kDim / 2
                                    : kDim * 2;
}

/// Stores keys and values of all heads: a chunk [token][head] into the scratch, or rows of a scratch into lanes.
void measure_store(Clock& clock, const StoreShape& shape) {
  if (!clock.wants(shape.name)) return;
  constexpr int kRuns = kKvHeads * 2;
  const std::size_t rows = std::size_t(shape.tokens) * kRuns;
  const std::size_t from_bytes = bytes_of_row(shape.source);
  const std::size_t to_bytes = bytes_of_row(shape.element);
  const Memory from(rows * from_bytes);
  const Memory to(rows * to_bytes);
  const Memory from_scales(rows * kDim / 32 * 2);
  const Memory to_scales(rows * kDim / 32 * 2);
  const Memory coarse((std::size_t(shape.tokens) / Angles::kFine + 1) * kDim * 4);
  const Memory fine(std::size_t{Angles::kFine} * kDim * 4);
  const Memory numbers(std::size_t(shape.tokens) * 4);
  from.randomized(shape.source == Element::f32 ? 4 : 2);
  coarse.randomized(4);
  fine.randomized(4);
  std::vector<std::int32_t> counted;
  for (int i = 0; i < shape.tokens; ++i) counted.push_back(i);
  numbers.put(counted);
  std::vector<StoredRun> runs;
  for (int i = 0; i < kRuns; ++i) {
    const bool chunk = !shape.listed;
    const std::size_t first = chunk ? std::size_t(i) : std::size_t(i) * shape.tokens;
    runs.push_back({.from = from.as<std::uint8_t>() + first * from_bytes,
                    .from_scales = from_scales.as<std::uint16_t>() + first * kDim / 32,
                    .to = to.as<std::uint8_t>() + std::size_t(i) * shape.tokens * to_bytes,
                    .to_scales = to_scales.as<std::uint16_t>() + std::size_t(i) * shape.tokens * kDim / 32,
                    .rows = chunk ? nullptr : numbers.as<std::int32_t>(),
                    .to_rows = nullptr,
                    .positions = shape.turned ? numbers.as<std::int32_t>() : nullptr,
                    .factors = nullptr,
                    .count = shape.tokens,
                    .first_row = 0,
                    .from_step = chunk ? kRuns : 1,
                    .sign = -1,
                    .shift = 0});
  }
  const Memory device_runs(runs.size() * sizeof(StoredRun));
  device_runs.put(runs);
  const StoreTask task{.runs = device_runs.as<StoredRun>(),
                       .angles = {coarse.as<float>(), fine.as<float>(), kDim / 2, kDim / 2, 1},
                       .bad = nullptr,
                       .source = shape.source,
                       .element = shape.element,
                       .run_count = kRuns,
                       .most = shape.tokens,
                       .dim = kDim};
  clock.measure(shape.name, {0, static_cast<double>(rows) * (from_bytes + to_bytes)},
                [&] { check(winnow_kernels()->store(task, nullptr)); });
}

/// Lengths of a layer's keys, of one head after the other.
void measure_products(Clock& clock) {
  constexpr int kTokens = 131072;
  const std::string name = "lengths of " + std::to_string(kTokens) + " keys";
  if (!clock.wants(name)) return;
  const std::size_t of_head = std::size_t{kTokens} * kDim;
  const Memory keys(kKvHeads * of_head * 2);
  const Memory out(std::size_t{kTokens} * 8);
  keys.randomized(2);
  clock.measure(name, {0, kKvHeads * (2.0 * of_head + 8.0 * kTokens)}, [&] {
    for (int head = 0; head < kKvHeads; ++head) {
      check(winnow_kernels()->products({.rows = keys.as<std::uint16_t>() + head * of_head,
                                        .vector = nullptr,
                                        .out = out.as<double>(),
                                        .element = Element::bf16,
                                        .count = kTokens,
                                        .dim = kDim},
                                       nullptr));
    }
  });
}

void measure_all(Clock& clock) {
  measure_copy(clock);
  for (const int tokens : {4096, 32768}) measure_prompt(clock, {tokens, kHeads, kKvHeads, kDim});
  for (const int rows : {1, 8, 24}) {
    for (const int entries : {1024, 32768, 131072}) measure_step(clock, {entries, rows});
  }
  measure_step(clock, {.entries = 1024, .rows = 1, .of_item = 64});
  measure_step(clock, {.entries = 32768, .rows = 1, .probabilities = true});
  measure_step(clock, {.entries = 32768, .rows = 8, .probabilities = true});
  for (const Element element : {Element::bf16, Element::q8_0, Element::q4_0}) {
    for (const int of_item : {256, 512, 1024}) measure_step(clock, {32768, 8, element, of_item});
    measure_step(clock, {.entries = 32768, .rows = 8, .element = element, .turned = true});
  }
  measure_store(clock, {"store chunk f32 bf16", Element::f32, Element::bf16, kChunk});
  measure_store(clock, {"store chunk f32 q8_0", Element::f32, Element::q8_0, kChunk});
  measure_store(clock, {"store 1024 of a scratch", Element::bf16, Element::bf16, 1024, true});
  measure_store(clock, {"store 32768 of a scratch", Element::bf16, Element::bf16, 32768, true});
  measure_store(clock, {"store 32768 of a scratch, turned", Element::bf16, Element::bf16, 32768, true, true});
  measure_store(clock, {"store 32768 of a scratch, q4_0", Element::bf16, Element::q4_0, 32768, true});
  measure_store(clock, {"store 32768 of lanes, q8_0", Element::q8_0, Element::q8_0, 32768, true});
  measure_products(clock);
  measure_prompt(clock, {32768, kHeads, kKvHeads, kDim, Element::f16});
  measure_prompt(clock, {32768, kHeads, kKvHeads, 64});
  measure_prompt(clock, {32768, 16, 8, 256});
  measure_prompt(clock, {131072, kHeads, kKvHeads, kDim});
}

}  // namespace
}  // namespace winnow::device

int main(int argc, char** argv) {
  try {
    winnow::device::Clock clock(argc > 1 ? argv[1] : "");
    winnow::device::measure_all(clock);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
