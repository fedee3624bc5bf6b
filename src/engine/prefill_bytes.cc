#include <algorithm>

#include "engine/cache_impl.h"
#include "engine/prefill.h"
#include "engine/replay.h"

namespace winnow::engine {

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
  const auto heads = static_cast<std::size_t>(hparams.n_head_kv);
  int longest = shared;
  for (const int tokens : prompts) {
    const ReplaySize again = replay_size(caches, hparams, vocab, tokens);
    longest = std::max(longest, tokens + again.longest);
    rows += again.all;
  }
  const std::size_t scratch = 2 * heads * cache::row_bytes(scratch_type(options.precision, caches), hparams.head_dim) *
                              static_cast<std::size_t>(longest);
  std::size_t lanes = 0;
  for (const int tokens : prompts) {
    for (const auto& c : caches) {
      const int entries = kept_entries(c, hparams, tokens);
      cache::LaneShape shape = lane_shape(c, hparams);
      shape.followers =
          std::min(shape.followers, static_cast<double>(tokens - entries) / std::max(1, entries));  // no more is left
      lanes += static_cast<std::size_t>(entries) * heads * static_cast<std::size_t>(hparams.n_layer) *
               cache::entry_bytes(shape);
    }
  }
  return hidden_bytes(hparams, static_cast<std::size_t>(rows)) + scratch + lanes;
}

}  // namespace winnow::engine
