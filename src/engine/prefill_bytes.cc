// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "attention/tiles.h"
#include "base/as_size.h"
#include "cache/summaries.h"
#include "engine/layers.h"
#include "engine/output_lengths.h"
#include "engine/prefill.h"
#include "engine/replay.h"

namespace winnow::engine {

namespace {

/// What all caches together want to see of a layer, without repeats. `terms` [cache]
std::vector<attention::Observe> wanted_by(std::span<const CacheOptions> caches, std::span<const policy::Terms> terms) {
  std::vector<attention::Observe> wanted;
  for (std::size_t i = 0; i < caches.size(); ++i) {
    for (const auto& what : observed_by(caches[i].spec.method(), terms[i])) {
      if (std::find(wanted.begin(), wanted.end(), what) == wanted.end()) wanted.push_back(what);
    }
  }
  return wanted;
}

/// Bytes of the work space in which the attention of such rows is observed, at their largest chunk.
std::size_t work_bytes(const attention::Shape& shape, const SessionOptions& options, RowRange rows,
                       const attention::Chunk& kind, std::vector<attention::ObservedPrompt> observed) {
  std::size_t most = 0;
  std::erase_if(observed, [](const auto& prompt) { return prompt.what.tiles.has_value(); });
  if (observed.empty()) return 0;
  const auto type = compute_type_of(options.precision);
  for (const auto& [first, count] : chunks_of(rows.count, options.chunk)) {
    attention::Chunk chunk = kind;
    chunk.first = rows.first + first;
    chunk.count = count;
    most = std::max(most, attention::observing_bytes(shape, type, options.threads, chunk, observed));
  }
  return most;
}

/// Bytes of a prompt's tiles, which stay until its layer is compressed.
std::size_t tile_bytes(const attention::Shape& shape, int tokens, std::span<const attention::Observe> wanted) {
  std::size_t sum = 0;
  for (const auto& what : wanted) sum += what.tiles ? attention::TileAttention::bytes(shape, *what.tiles, tokens) : 0;
  return sum;
}

/// Bytes of the work space of passages that are read again, all of whose rows are observed.
std::size_t replay_work_bytes(const attention::Shape& shape, const SessionOptions& options, int tokens,
                              const ReplaySize& again) {
  const attention::Observe all{{attention::ObservedRows::Kind::all, 0, {}}, attention::Reduction::max};
  std::size_t most = 0;
  for (const auto& passage : again.passages) {
    attention::Chunk kind;
    kind.recorded = {passage.recorded.begin, std::min(passage.recorded.end, tokens)};
    most = std::max(most, work_bytes(shape, options, {tokens, passage.rows}, kind, {{all, tokens}}));
  }
  return most;
}

/// Entries that all heads of each layer keep together, [layer].
std::vector<int> layer_entries(const CacheOptions& options, const model::Hparams& hparams, const PromptSize& size) {
  const auto budgets = layer_budgets(options, hparams, size);
  const int tokens = size.tokens;
  std::vector<int> out;
  for (int layer = 0; layer < hparams.n_kv_layer; ++layer) {
    const int heads = hparams.layer(layer).n_head_kv;
    const bool evicts = method_of(options, hparams.layer(layer)).evicts();
    out.push_back(evicts ? std::min(heads * tokens, budgets[layer].total(heads)) : heads * tokens);
  }
  return out;
}

/// The largest plan of what a layer keeps; there is one at a time.
std::size_t plan_bytes(const CacheOptions& options, const model::Hparams& hparams, const PromptSize& size) {
  const auto entries = layer_entries(options, hparams, size);
  std::size_t most = 0;
  for (int layer = 0; layer < hparams.n_kv_layer; ++layer) {
    const auto& spec = hparams.layer(layer);
    const auto& method = method_of(options, spec);
    most = std::max(most, policy::plan_bytes(method, shape_of(hparams, layer), size.tokens, entries[layer]));
  }
  return most;
}

/// What all caches together have recorded of a prompt's queries. `terms` [cache]; `layers` read the same keys.
std::size_t query_rows_bytes(const model::LayerSpec& layer, std::span<const CacheOptions> caches,
                             std::span<const policy::Terms> terms, int layers) {
  std::vector<attention::ObservedRows> different;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < caches.size(); ++i) {
    const auto rows = query_rows_of(caches[i].spec.method(), terms[i]);
    if (!rows || std::ranges::find(different, *rows) != different.end()) continue;
    bytes += attention::QueryRows::bytes(*rows, terms[i].prompt.tokens, layer.n_head, layer.head_dim, layers);
    different.push_back(*rows);
  }
  return bytes;
}

/// Layers that read the same keys, at most.
int most_readers(const model::Hparams& hparams) {
  std::vector<int> readers(as_size(hparams.n_layer));
  for (int layer = 0; layer < hparams.n_layer; ++layer) ++readers[as_size(hparams.kv_layer(layer))];
  return *std::ranges::max_element(readers);
}

/// What looking at a layer takes.
struct LayerBytes {
  std::size_t observed = 0;  ///< of all prompts
  std::size_t work = 0;      ///< of one of them, while it is read
  std::size_t lengths = 0;   ///< the same, of its values' parts of the output, when it has been read

  void raise(const LayerBytes& other) {
    observed = std::max(observed, other.observed);
    work = std::max(work, other.work);
    lengths = std::max(lengths, other.lengths);
  }
};

/// `shared` rows of all prompts; `again` [prompt]
LayerBytes layer_bytes(const model::LayerSpec& layer, const model::Hparams& hparams, const SessionOptions& options,
                       int shared, std::span<const PromptSize> prompts, std::span<const ReplaySize> again,
                       std::span<const CacheOptions> caches, int past) {
  const attention::Shape shape{layer.n_head, layer.n_head_kv, layer.head_dim};
  attention::Chunk kind;
  kind.past = past;
  LayerBytes out;
  std::vector<attention::ObservedPrompt> all;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const int tokens = prompts[i].tokens;
    std::vector<policy::Terms> terms;
    for (const auto& c : caches)
      terms.push_back({prompt_of(layer, prompts[i]), budget_entries(c, hparams, tokens), {}});
    const auto wanted = wanted_by(caches, terms);
    out.observed += (wanted.size() + as_size(again[i].times)) * as_size(layer.n_head) * as_size(tokens) * sizeof(float);
    out.observed += tile_bytes(shape, tokens, wanted);
    out.observed += query_rows_bytes(layer, caches, terms, most_readers(hparams));
    if (std::ranges::any_of(caches, [](const auto& c) { return c.spec.method().selection.predicted; }))
      out.observed += as_size(layer.n_head_kv) * as_size(tokens) * sizeof(float);
    std::vector<attention::ObservedPrompt> observed;
    for (const auto& what : wanted) observed.push_back({what, tokens});
    all.insert(all.end(), observed.begin(), observed.end());
    out.work = std::max({out.work, work_bytes(shape, options, {shared, tokens - shared}, kind, std::move(observed)),
                         replay_work_bytes(shape, options, tokens, again[i])});
    for (std::size_t c = 0; c < caches.size(); ++c) {
      if (wants_output_lengths(caches[c].spec.method(), terms[c]))
        out.lengths = std::max(out.lengths, output_lengths_bytes(hparams, layer, tokens));
    }
  }
  out.work = std::max(out.work, work_bytes(shape, options, {0, shared}, kind, std::move(all)));
  return out;
}

}  // namespace

attention::ComputeType compute_type_of(Precision precision) {
  using attention::ComputeType;
  return precision != Precision::f32 && attention::supports(ComputeType::bf16) ? ComputeType::bf16 : ComputeType::f32;
}

std::vector<attention::Observe> observed_by(const policy::Method& method, const policy::Terms& terms) {
  return method.reading.observe ? method.reading.observe.call(terms.prompt, terms.budget)
                                : std::vector<attention::Observe>();
}

std::optional<attention::ObservedRows> query_rows_of(const policy::Method& method, const policy::Terms& terms) {
  const bool evicts = method.evicts() && terms.prompt.tokens > terms.budget;
  if (!evicts || !method.reading.query_rows) return std::nullopt;
  return method.reading.query_rows.call(terms.prompt, terms.budget);
}

ElementType scratch_type(Precision precision, std::span<const CacheOptions> caches) {
  if (precision == Precision::f32) return ElementType::f32;
  const auto all = [&](auto&& fits) {
    return std::all_of(caches.begin(), caches.end(),
                       [&](const CacheOptions& c) { return fits(c.kv_type.key) && fits(c.kv_type.value); });
  };
  if (all([](ElementType t) { return t == ElementType::f16 || t == ElementType::q8_0 || t == ElementType::q4_0; })) {
    return ElementType::f16;
  }
  if (all([](ElementType t) { return t == ElementType::bf16; })) return ElementType::bf16;
  return ElementType::f32;
}

std::size_t scratch_bytes(const model::Hparams& hparams, ElementType type) {
  std::size_t most = 0;
  for (const auto& heads : kv_heads_of(hparams))
    most = std::max(most, 2 * as_size(heads.count) * cache::row_bytes(type, heads.dim));
  return most;
}

/// The same of all layers whose keys others read, and so stay.
std::size_t shared_scratch_bytes(const model::Hparams& hparams, ElementType type) {
  std::size_t bytes = 0;
  for (int layer = 0; layer < hparams.n_kv_layer; ++layer) {
    const auto heads = kv_heads_of(hparams.layer(layer));
    if (hparams.last_reader(layer) != layer) bytes += 2 * as_size(heads.count) * cache::row_bytes(type, heads.dim);
  }
  return bytes;
}

PastSize past_size(ElementType type, const model::Hparams& hparams, int tokens, std::size_t rows) {
  PastSize out{static_cast<int>(std::min(rows, as_size(tokens))), 0};
  for (const auto& kind : hparams.kinds)
    out.bytes = std::max(out.bytes, cache::PastRows::bytes(type, kind.head_dim, rows));
  return out;
}

std::size_t rows_kept(const CacheOptions& options, const model::Hparams& hparams, const PromptSize& size) {
  const auto entries = layer_entries(options, hparams, size);
  const double merged = 1 + options.spec.method().lanes.merged_entries;
  return static_cast<std::size_t>(merged * *std::ranges::max_element(entries));
}

std::size_t cache_bytes(const CacheOptions& options, const model::Hparams& hparams, const PromptSize& size) {
  const auto entries = layer_entries(options, hparams, size);
  const int tokens = size.tokens;
  std::size_t bytes = summary_bytes(options, hparams, 1);
  for (int layer = 0; layer < hparams.n_kv_layer; ++layer) {
    cache::LaneShape shape = lane_shape(options, hparams.layer(layer));
    const double evicted = shape.kv_heads * tokens - entries[layer];
    shape.merged_entries = std::min(shape.merged_entries, evicted / std::max(1, entries[layer]));  // no more is left
    bytes += as_size(entries[layer]) * entry_and_summary_bytes(shape);
  }
  return bytes;
}

ReadingBytes prefill_bytes(const model::Hparams& hparams, const model::Vocab& vocab, const SessionOptions& options,
                           int shared, int rows, std::size_t row_bytes, std::span<const PromptSize> prompts,
                           std::span<const CacheOptions> caches, const PastSize& past) {
  int longest = shared;
  std::size_t lanes = 0;
  std::size_t planned = 0;
  std::size_t known = 0;  // of tokens
  std::vector<ReplaySize> again;
  for (const auto& prompt : prompts) {
    const auto tokens = as_size(prompt.tokens);
    again.push_back(replay_size(caches, hparams, vocab, prompt.tokens));
    longest = std::max(longest, prompt.tokens + again.back().longest());
    rows += again.back().all();
    known += tokens * sizeof(TokenClass);
    for (const auto& c : caches) {
      lanes += cache_bytes(c, hparams, prompt);
      planned = std::max(planned, plan_bytes(c, hparams, prompt));
    }
  }
  LayerBytes most;
  for (const auto& kind : hparams.kinds) {
    if (kind.window == 0) most.raise(layer_bytes(kind, hparams, options, shared, prompts, again, caches, past.rows));
  }
  const ElementType type = scratch_type(options.precision, caches);
  const std::size_t scratch = scratch_bytes(hparams, type) * as_size(longest);
  const std::size_t shared_scratch = shared_scratch_bytes(hparams, type) * as_size(longest + rows - shared);
  return {most.work, as_size(rows) * row_bytes + scratch + shared_scratch + most.observed + most.lengths + planned +
                         known + lanes + past.bytes};
}

}  // namespace winnow::engine
