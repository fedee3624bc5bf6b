// SPDX-License-Identifier: Apache-2.0
#include "engine/layers.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "base/as_size.h"
#include "base/format.h"
#include "cache/lane_storage.h"
#include "engine/calibration.h"
#include "network/executor.h"
#include "policy/sequence_layer.h"
#include "winnow/budget_error.h"
#include "winnow/error.h"
#include "winnow/recommended.h"

namespace winnow::engine {

attention::Shape shape_of(const model::Hparams& hparams, int layer) {
  const auto& s = hparams.layer(layer);
  attention::Shape shape{s.n_head, s.n_head_kv, s.head_dim, s.attention_scale, s.window, s.attention_cap};
  if (!hparams.sink_logits.empty()) shape.sink_logits = hparams.sink_logits[as_size(layer)];
  return shape;
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

const policy::Method& method_of(const CacheOptions& options, const model::LayerSpec& spec) {
  return spec.window > 0 ? policy::sliding_window() : options.spec.method();
}

int first_global(const model::Hparams& hparams) {
  for (int layer = 0; layer < hparams.n_kv_layer; ++layer) {
    if (hparams.layer(layer).window == 0) return layer;
  }
  return 0;
}

const policy::LayerCalibration& no_calibration() {
  static const policy::LayerCalibration none;
  return none;
}

const policy::LayerCalibration& calibration_of(const Calibration* calibration, const model::Hparams& hparams,
                                               int layer) {
  if (calibration == nullptr || hparams.layer(layer).window > 0) return no_calibration();
  return calibration->layers[as_size(hparams.place_of[as_size(layer)])];
}

policy::LayerView view_of(const model::Hparams& hparams, int layer, const cache::LayerScratch& scratch,
                          const policy::LayerCalibration& calibration) {
  const auto& spec = hparams.layer(layer);
  const int alike = spec.window == 0 ? hparams.n_global : hparams.n_windowed();
  return {hparams.place_of[layer], alike, layer, shape_of(hparams, layer), scratch, spec.rope, calibration};
}

policy::ObservedLayer observed_layer(const model::Hparams& hparams, int layer, const PromptSize& size, int past,
                                     const policy::LayerCalibration& calibration) {
  const auto& spec = hparams.layer(layer);
  const int keys_of = hparams.kv_layer(layer);
  int readers = 0;
  for (int other = 0; other < hparams.n_layer; ++other) readers += hparams.kv_layer(other) == keys_of ? 1 : 0;
  return {.number = layer,
          .keys_of = keys_of,
          .readers = readers,
          .prompt = prompt_of(spec, size),
          .shape = shape_of(hparams, layer),
          .rope = spec.rope,
          .calibration = calibration,
          .past = past,
          .input_dim = hparams.n_embd,
          .projection_bytes = network::Executor::output_lengths_bytes(hparams)};
}

cache::LaneShape lane_shape(const CacheOptions& options, const model::LayerSpec& spec) {
  const attention::Shape heads{spec.n_head, spec.n_head_kv, spec.head_dim};
  return policy::lane_shape(method_of(options, spec), options.kv_type, heads, spec.rope);
}

namespace {

/// Sums up each(spec, bytes of an entry in all heads) over the layers with windows.
template <class Each>
std::size_t over_windows(const CacheOptions& options, const model::Hparams& hparams, const Each& each) {
  std::size_t bytes = 0;
  for (int layer = 0; layer < hparams.n_kv_layer; ++layer) {
    const auto& spec = hparams.layer(layer);
    if (spec.window > 0) bytes += each(spec, as_size(spec.n_head_kv) * cache::entry_bytes(lane_shape(options, spec)));
  }
  return bytes;
}

}  // namespace

std::size_t entry_and_summary_bytes(const cache::LaneShape& shape) {
  const auto block = as_size(shape.summary_block);
  return cache::entry_bytes(shape) + (cache::summary_bytes(shape) + block - 1) / block;
}

std::size_t summary_bytes(const CacheOptions& options, const model::Hparams& hparams, int blocks) {
  std::size_t bytes = 0;
  for (int layer = 0; layer < hparams.n_kv_layer; ++layer) {
    const auto shape = lane_shape(options, hparams.layer(layer));
    bytes += as_size(blocks) * as_size(shape.kv_heads) * cache::summary_bytes(shape);
  }
  return bytes;
}

std::size_t entry_bytes(const CacheOptions& options, const model::Hparams& hparams) {
  std::size_t bytes = 0;
  for (int layer = 0; layer < hparams.n_kv_layer; ++layer) {
    const auto& spec = hparams.layer(layer);
    if (spec.window == 0) bytes += as_size(spec.n_head_kv) * entry_and_summary_bytes(lane_shape(options, spec));
  }
  return bytes;
}

std::size_t window_bytes(const CacheOptions& options, const model::Hparams& hparams, int tokens) {
  return over_windows(options, hparams, [tokens](const model::LayerSpec& spec, std::size_t entry) {
    return as_size(std::min(tokens, spec.window)) * entry;
  });
}

std::size_t window_growth_bytes(const CacheOptions& options, const model::Hparams& hparams, int tokens, int more,
                                int together) {
  return over_windows(options, hparams, [=](const model::LayerSpec& spec, std::size_t entry) {
    const int grown = std::min(more, std::max(0, spec.window - tokens));
    return as_size(grown + std::min(more, together) + cache::LaneStorage::kTailBlock) * entry;
  });
}

policy::LayerPrompt prompt_of(const model::LayerSpec& spec, const PromptSize& size) {
  return {size.tokens, spec.group(), spec.head_dim, spec.n_head_kv, size.question};
}

std::vector<policy::LayerPrompt> prompts_of(const model::Hparams& hparams, const PromptSize& size) {
  std::vector<policy::LayerPrompt> out;
  for (int layer = 0; layer < hparams.n_kv_layer; ++layer) {
    if (hparams.layer(layer).window == 0) out.push_back(prompt_of(hparams.layer(layer), size));
  }
  return out;
}

std::vector<policy::Terms> terms_of(const CacheOptions& options, const model::Hparams& hparams,
                                    const PromptSize& size) {
  const int budget = budget_entries(options, hparams, size.tokens);
  std::vector<policy::Terms> out;
  for (int layer = 0; layer < hparams.n_kv_layer; ++layer) {
    const auto& spec = hparams.layer(layer);
    const auto& selection = method_of(options, spec).selection;
    const auto prompt = prompt_of(spec, size);
    const int entries = spec.window > 0 ? spec.window : budget;
    out.push_back(
        {prompt, entries, selection.always_kept ? selection.always_kept.call(prompt, entries) : policy::AlwaysKept{}});
  }
  return out;
}

namespace {

/// Checks that a layer without a window exists, and that a budget in bytes is enough for the windows.
void check_windows(const CacheOptions& options, const model::Hparams& hparams, int tokens) {
  if (!options.spec.method().needs_budget() || hparams.n_windowed() == 0) return;
  if (hparams.n_global == 0) {
    throw UsageError(
        fmt::format("all {} layers of the model have sliding windows, so {} has nothing to evict: use full",
                    hparams.n_layer, method_label(options.spec.print())));
  }
  const auto bytes = window_bytes(options, hparams, tokens);
  const auto& budget = *options.budget;
  if (budget.unit() == Budget::Unit::bytes && budget.amount() < static_cast<double>(bytes)) {
    throw BudgetError(
        fmt::format("a budget of {} is too small: the sliding windows of {} layers alone take {} with {} tokens",
                    budget.print(), hparams.n_windowed(), format_bytes(bytes), tokens));
  }
}

/// Checks that rotating keys and queries moves them to other positions in this model.
void check_turning(const CacheOptions& options, const model::Hparams& hparams) {
  const auto& method = options.spec.method();
  const bool turns = method.positions != policy::Positions::absolute || method.selection.turns;
  if (!turns || hparams.keys_turn()) return;
  throw UsageError(
      fmt::format("{} cannot run with the architecture {}: it rotates keys or queries to other positions, which norms "
                  "after RoPE make impossible",
                  method_label(options.spec.print()), hparams.architecture->name));
}

/// Refuses methods that retrieve for models whose layers share keys: they choose entries for the query of one layer.
void check_choosing(const CacheOptions& options, const model::Hparams& hparams) {
  if (!options.spec.method().retrieves || hparams.n_kv_layer == hparams.n_layer) return;
  throw UsageError(
      fmt::format("{} cannot run yet with a model in which {} layers read other layers' keys: it chooses keys for one "
                  "layer's queries",
                  method_label(options.spec.print()), hparams.n_layer - hparams.n_kv_layer));
}

/// Bytes of a budget that are not for entries: the windows, and the summary of each lane's current block.
std::size_t besides_entries(const CacheOptions& options, const model::Hparams& hparams, int tokens) {
  return window_bytes(options, hparams, tokens) + summary_bytes(options, hparams, 1);
}

/// Checks that a budget in bytes is enough for the windows and the method. The method itself counts entries.
void check_bytes(const CacheOptions& options, const model::Hparams& hparams, int tokens) {
  const auto& method = options.spec.method();
  if (!method.needs_budget() || options.budget->unit() != Budget::Unit::bytes) return;
  const int least = least_budget(method, hparams, tokens);
  const int entries = budget_entries(options, hparams, tokens);
  if (entries >= least) return;
  const std::size_t bytes = as_size(least) * entry_bytes(options, hparams) + besides_entries(options, hparams, tokens);
  throw BudgetError(fmt::format(
      "a budget of {} has room for {} entries per KV head, but {} needs at least {} for {} tokens: give {} or more",
      options.budget->print(), entries, method.name, least, tokens, format_at_least(bytes)));
}

}  // namespace

std::vector<policy::LayerBudget> layer_budgets(const CacheOptions& options, const model::Hparams& hparams,
                                               const PromptSize& size) {
  const int tokens = size.tokens;
  check_turning(options, hparams);
  check_choosing(options, hparams);
  check_windows(options, hparams, tokens);
  check_bytes(options, hparams, tokens);
  std::vector<policy::LayerBudget> global;
  if (hparams.n_global > 0)
    global = policy::spread_over_layers(options.spec.method(), budget_entries(options, hparams, tokens),
                                        prompts_of(hparams, size));
  std::vector<policy::LayerBudget> out;
  for (int layer = 0; layer < hparams.n_kv_layer; ++layer) {
    const int window = hparams.layer(layer).window;
    out.push_back(window > 0 ? policy::LayerBudget{window, {}} : global[as_size(hparams.place_of[layer])]);
  }
  return out;
}

int least_budget(const policy::Method& method, const model::Hparams& hparams, int tokens) {
  int least = 0;
  for (const auto& kind : hparams.kinds) {
    if (kind.window == 0) least = std::max(least, policy::least_budget(method, prompt_of(kind, tokens)));
  }
  return least;
}

int budget_entries(const CacheOptions& options, const model::Hparams& hparams, int tokens) {
  if (!options.spec.method().needs_budget()) return tokens;
  return options.budget->entries(tokens, entry_bytes(options, hparams), besides_entries(options, hparams, tokens));
}

}  // namespace winnow::engine
