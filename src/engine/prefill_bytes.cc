#include <algorithm>

#include "engine/cache_impl.h"
#include "engine/prefill.h"
#include "engine/replay.h"

namespace winnow::engine {

namespace {

/// What all caches together want to see, without repeats.
std::vector<attention::Observe> wanted_by(std::span<const CacheOptions> caches, const model::Hparams& hparams,
                                          int tokens) {
  std::vector<attention::Observe> wanted;
  for (const auto& options : caches) {
    for (const auto& what : observed_by(options, hparams, tokens)) {
      if (std::find(wanted.begin(), wanted.end(), what) == wanted.end()) wanted.push_back(what);
    }
  }
  return wanted;
}

/// Bytes of the work space of observing a prompt's attention, at its largest chunk.
std::size_t work_bytes(const attention::Shape& shape, const SessionOptions& options, int tokens,
                       std::span<const attention::Observe> wanted) {
  std::size_t most = 0;
  for (int first = 0; first < tokens && !wanted.empty(); first += options.chunk) {
    const attention::Chunk chunk{tokens, first, std::min(options.chunk, tokens - first)};
    most = std::max(most,
                    attention::observing_bytes(shape, products_of(options.precision), options.threads, chunk, wanted));
  }
  return most;
}

std::size_t lane_bytes(const CacheOptions& options, const model::Hparams& hparams, int tokens) {
  const int entries = kept_entries(options, hparams, tokens);
  cache::LaneShape shape = lane_shape(options, hparams);
  shape.followers =
      std::min(shape.followers, static_cast<double>(tokens - entries) / std::max(1, entries));  // no more is left
  return static_cast<std::size_t>(entries) * static_cast<std::size_t>(hparams.n_head_kv) *
         static_cast<std::size_t>(hparams.n_layer) * cache::entry_bytes(shape);
}

}  // namespace

attention::Products products_of(Precision precision) {
  using attention::Products;
  return precision != Precision::f32 && attention::has_products(Products::bf16) ? Products::bf16 : Products::f32;
}

std::vector<attention::Observe> observed_by(const CacheOptions& options, const model::Hparams& hparams, int tokens) {
  const auto& method = options.spec.method();
  if (!method.observe) return {};
  return method.observe.call({tokens, hparams.n_head / hparams.n_head_kv, hparams.head_dim},
                             budget_entries(options, hparams, tokens));
}

std::size_t hidden_bytes(const model::Hparams& hparams, std::size_t rows) {
  return rows * static_cast<std::size_t>(hparams.n_embd) * sizeof(float);
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

std::size_t prefill_bytes(const model::Hparams& hparams, const model::Vocab& vocab, const SessionOptions& options,
                          int shared, int rows, std::span<const int> prompts, std::span<const CacheOptions> caches) {
  const attention::Shape heads{hparams.n_head, hparams.n_head_kv, hparams.head_dim};
  int longest = shared;
  std::size_t observed = 0;
  std::size_t work = 0;
  std::size_t planned = 0;  // one plan at a time
  std::size_t lanes = 0;
  for (const int tokens : prompts) {
    const ReplaySize again = replay_size(caches, hparams, vocab, tokens);
    longest = std::max(longest, tokens + again.longest);
    rows += again.all;
    const auto wanted = wanted_by(caches, hparams, tokens);
    observed += (wanted.size() + static_cast<std::size_t>(again.times)) * static_cast<std::size_t>(hparams.n_head) *
                static_cast<std::size_t>(tokens) * sizeof(float);
    work = std::max(work, work_bytes(heads, options, tokens, wanted));
    for (const auto& c : caches) {
      planned =
          std::max(planned, policy::plan_bytes(c.spec.method(), heads, tokens, budget_entries(c, hparams, tokens)));
      lanes += lane_bytes(c, hparams, tokens);
    }
  }
  const std::size_t row = cache::row_bytes(scratch_type(options.precision, caches), hparams.head_dim);
  const std::size_t scratch = 2 * static_cast<std::size_t>(hparams.n_head_kv) * row * static_cast<std::size_t>(longest);
  return hidden_bytes(hparams, static_cast<std::size_t>(rows)) + scratch + observed + work + planned + lanes;
}

}  // namespace winnow::engine
