// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/as_size.h"
#include "cache/summaries.h"
#include "engine/layers.h"
#include "engine/prefill.h"
#include "engine/replay.h"

namespace winnow::engine {

namespace {

/// Bytes of the work space in which the attention of such rows is observed, at their largest chunk.
std::size_t work_bytes(const attention::Shape& shape, const SessionOptions& options, RowRange rows,
                       const attention::Chunk& kind, std::span<const attention::ObservedPrompt> observed) {
  std::size_t most = 0;
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

/// Bytes of the work space of passages that are read again, all of whose rows are observed.
std::size_t replay_work_bytes(const attention::Shape& shape, const SessionOptions& options, int tokens,
                              const PassageSizes& again) {
  const attention::Observe all{{attention::ObservedRows::Kind::all, 0, {}}, attention::Reduction::max};
  const attention::ObservedPrompt observed{all, tokens};
  std::size_t most = 0;
  for (const auto& passage : again.passages) {
    attention::Chunk kind;
    kind.recorded = {passage.recorded.begin, std::min(passage.recorded.end, tokens)};
    most = std::max(most, work_bytes(shape, options, {tokens, passage.rows}, kind, std::span(&observed, 1)));
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

/// What looking at a layer takes.
struct LayerBytes {
  std::size_t observed = 0;  ///< of all prompts
  std::size_t work = 0;      ///< of one of them, while it is read
  std::size_t ending = 0;    ///< the same, when it has been read

  void raise(const LayerBytes& other) {
    observed = std::max(observed, other.observed);
    work = std::max(work, other.work);
    ending = std::max(ending, other.ending);
  }
};

/// The first layer of each kind.
std::vector<int> first_of_each_kind(const model::Hparams& hparams) {
  std::vector<int> out;
  for (std::size_t kind = 0; kind < hparams.kinds.size(); ++kind) {
    const auto first = std::ranges::find(hparams.kind_of, static_cast<int>(kind));
    out.push_back(static_cast<int>(first - hparams.kind_of.begin()));
  }
  return out;
}

std::vector<CacheOptions> options_of(std::span<const CachePass> caches) {
  std::vector<CacheOptions> out;
  for (const auto& cache : caches) out.push_back(cache.options);
  return out;
}

/// Requests of all caches together in a layer of a prompt, each once; but replays with drafts, which may differ.
std::vector<policy::ObserverRequestPtr> asked_by(std::span<const CachePass> caches, const model::Hparams& hparams,
                                                 const model::LayerSpec& layer, const PromptSize& size, int past) {
  std::vector<policy::ObserverRequestPtr> out;
  for (const auto& cache : caches) {
    for (const auto& request : requests_of(cache, hparams, layer, size, past)) {
      if (request && request->replay() == nullptr) policy::add_requests(std::span(&request, 1), out);
    }
  }
  for (const auto& request : replays_of(caches, hparams, size, past)) out.push_back(request);
  return out;
}

/// `shared` rows of all prompts; `again` [prompt]; the prompts come after `past` tokens, of which a layer has `kept`
/// rows of a KV head.
LayerBytes layer_bytes(int layer, const model::Hparams& hparams, const SessionOptions& options, int shared,
                       std::span<const PromptSize> prompts, std::span<const PassageSizes> again,
                       std::span<const CachePass> caches, const PastSize& past) {
  const auto shape = shape_of(hparams, layer);
  attention::Chunk kind;
  kind.past = past.rows;
  LayerBytes out;
  std::vector<attention::ObservedPrompt> all;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const int tokens = prompts[i].tokens;
    const auto site = observed_layer(hparams, layer, prompts[i], past.tokens);
    std::vector<attention::ObservedPrompt> observed;
    std::size_t ending = 0;
    for (const auto& request : asked_by(caches, hparams, hparams.layer(layer), prompts[i], past.tokens)) {
      const auto bytes = request->bytes(site);
      out.observed += bytes.reading;
      ending += bytes.ending;
      if (request->replay() != nullptr) continue;
      for (const auto& what : request->columns()) observed.push_back({what, tokens});
    }
    out.ending = std::max(out.ending, ending);
    all.insert(all.end(), observed.begin(), observed.end());
    out.work = std::max({out.work, work_bytes(shape, options, {shared, tokens - shared}, kind, observed),
                         replay_work_bytes(shape, options, tokens, again[i])});
  }
  out.work = std::max(out.work, work_bytes(shape, options, {0, shared}, kind, all));
  return out;
}

}  // namespace

attention::ComputeType compute_type_of(Precision precision) {
  using attention::ComputeType;
  return precision != Precision::f32 && attention::supports(ComputeType::bf16) ? ComputeType::bf16 : ComputeType::f32;
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
  PastSize out{tokens, static_cast<int>(std::min(rows, as_size(tokens))), 0};
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

int PassageSizes::all() const {
  int rows = 0;
  for (const auto& passage : passages) rows += passage.rows;
  return rows;
}

int PassageSizes::longest() const {
  int most = 0;
  for (const auto& passage : passages) most = std::max(most, passage.rows);
  return most;
}

PassageSizes passages_of(std::span<const CachePass> caches, const model::Hparams& hparams, const model::Vocab& vocab,
                         const PromptSize& size, int past) {
  PassageSizes out;
  for (const auto& request : replays_of(caches, hparams, size, past)) {
    for (const auto& passage : request->replay()->passages)
      out.passages.push_back({rows_of(passage, vocab), passage.recorded});
  }
  return out;
}

ReadingBytes prefill_bytes(const model::Hparams& hparams, const model::Vocab& vocab, const SessionOptions& options,
                           int shared, int rows, std::size_t row_bytes, std::span<const PromptSize> prompts,
                           std::span<const CachePass> caches, const PastSize& past) {
  int longest = shared;
  std::size_t lanes = 0;
  std::size_t planned = 0;
  std::size_t known = 0;  // of tokens
  std::vector<PassageSizes> again;
  for (const auto& prompt : prompts) {
    again.push_back(passages_of(caches, hparams, vocab, prompt, past.tokens));
    longest = std::max(longest, prompt.tokens + again.back().longest());
    rows += again.back().all();
    known += as_size(prompt.tokens) * sizeof(TokenClass);
    for (const auto& c : caches) {
      lanes += cache_bytes(c.options, hparams, prompt);
      planned = std::max(planned, plan_bytes(c.options, hparams, prompt));
    }
  }
  LayerBytes most;
  for (const int layer : first_of_each_kind(hparams)) {
    if (hparams.layer(layer).window == 0)
      most.raise(layer_bytes(layer, hparams, options, shared, prompts, again, caches, past));
  }
  const ElementType type = scratch_type(options.precision, options_of(caches));
  const std::size_t scratch = scratch_bytes(hparams, type) * as_size(longest);
  const std::size_t shared_scratch = shared_scratch_bytes(hparams, type) * as_size(longest + rows - shared);
  return {most.work, as_size(rows) * row_bytes + scratch + shared_scratch + most.observed + most.ending + planned +
                         known + lanes + past.bytes};
}

}  // namespace winnow::engine
