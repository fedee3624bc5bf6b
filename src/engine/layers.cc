// SPDX-License-Identifier: Apache-2.0
#include "engine/layers.h"

#include <algorithm>

#include "base/as_size.h"
#include "policy/sequence_layer.h"

namespace winnow::engine {

attention::Shape shape_of(const model::LayerSpec& spec) {
  return {spec.n_head, spec.n_head_kv, spec.head_dim, spec.attention_scale, spec.window};
}

cache::KvHeads kv_heads_of(const model::LayerSpec& spec) { return {spec.n_head_kv, spec.head_dim}; }

std::vector<cache::KvHeads> kv_heads_of(const model::Hparams& hparams) {
  std::vector<cache::KvHeads> out;
  for (const auto& kind : hparams.kinds) out.push_back(kv_heads_of(kind));
  return out;
}

MostHeads most_heads(const model::Hparams& hparams) {
  MostHeads most;
  for (const auto& kind : hparams.kinds) most = {std::max(most.query, kind.n_head), std::max(most.kv, kind.n_head_kv)};
  return most;
}

policy::LayerView view_of(const model::Hparams& hparams, int layer, const cache::LayerScratch& scratch) {
  const auto& spec = hparams.layer(layer);
  return {layer, hparams.n_layer, shape_of(spec), &scratch, {}, nullptr, &spec.rope, nullptr};
}

cache::LaneShape lane_shape(const CacheOptions& options, const model::LayerSpec& spec) {
  return policy::lane_shape(options.spec.method(), options.kv_type, shape_of(spec), spec.rope);
}

std::size_t entry_bytes(const CacheOptions& options, const model::Hparams& hparams) {
  std::size_t bytes = 0;
  for (int layer = 0; layer < hparams.n_layer; ++layer) {
    const auto& spec = hparams.layer(layer);
    bytes += as_size(spec.n_head_kv) * cache::entry_bytes(lane_shape(options, spec));
  }
  return bytes;
}

bool is_whole_lane(const model::LayerSpec& spec, int entries, int seen) {
  if (spec.window == 0) return entries == seen;
  return entries >= std::min(seen, spec.window - 1) && entries <= std::min(seen, spec.window);
}

policy::LayerPrompt prompt_of(const model::LayerSpec& spec, int tokens) {
  return {tokens, spec.group(), spec.head_dim, spec.n_head_kv};
}

std::vector<policy::LayerPrompt> prompts_of(const model::Hparams& hparams, int tokens) {
  std::vector<policy::LayerPrompt> out;
  for (int layer = 0; layer < hparams.n_layer; ++layer) out.push_back(prompt_of(hparams.layer(layer), tokens));
  return out;
}

std::vector<policy::Terms> terms_of(const CacheOptions& options, const model::Hparams& hparams, int tokens) {
  const auto& method = options.spec.method();
  const int budget = budget_entries(options, hparams, tokens);
  std::vector<policy::Terms> out;
  for (const auto& prompt : prompts_of(hparams, tokens))
    out.push_back(
        {prompt, budget,
         method.selection.always_kept ? method.selection.always_kept.call(prompt, budget) : policy::AlwaysKept{}});
  return out;
}

std::vector<policy::LayerBudget> layer_budgets(const CacheOptions& options, const model::Hparams& hparams, int tokens) {
  return policy::spread_over_layers(options.spec.method(), budget_entries(options, hparams, tokens),
                                    prompts_of(hparams, tokens));
}

int least_budget(const policy::Method& method, const model::Hparams& hparams, int tokens) {
  int least = 0;
  for (const auto& kind : hparams.kinds) least = std::max(least, policy::least_budget(method, prompt_of(kind, tokens)));
  return least;
}

int budget_entries(const CacheOptions& options, const model::Hparams& hparams, int tokens) {
  if (!options.spec.method().needs_budget()) return tokens;
  return options.budget->entries(tokens, entry_bytes(options, hparams));
}

}  // namespace winnow::engine
