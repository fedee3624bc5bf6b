// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "attention/attention.h"
#include "cache/growing_lanes.h"
#include "cache/scratch.h"
#include "model/hparams.h"
#include "policy/plan.h"
#include "policy/sliding_window.h"
#include "winnow/session.h"

/// What the layers of a model are to attention, caches and methods.
namespace winnow::engine {

struct Calibration;

/// `hparams` outlives it.
attention::Shape shape_of(const model::Hparams& hparams, int layer);

cache::KvHeads kv_heads_of(const model::LayerSpec& spec);
/// Of each kind of layers: what a scratch must have room for.
std::vector<cache::KvHeads> kv_heads_of(const model::Hparams& hparams);

/// What fills the lanes of a layer: the method of `options`, unless the layer has a window.
const policy::Method& method_of(const CacheOptions& options, const model::LayerSpec& spec);
/// The first layer without a window; where all have one, the first.
int first_global(const model::Hparams& hparams);

/// Sizes of a prompt that are known before it is read.
struct PromptSize {
  PromptSize(int all, int last = 0) : tokens(all), question(last) {}  // NOLINT(google-explicit-constructor)

  int tokens;
  int question;  ///< the last ones of them, which are its question; 0: not known
};

/// That of a session without one: empty.
const policy::LayerCalibration& no_calibration();
/// The calibration of a layer; empty for layers with windows.
const policy::LayerCalibration& calibration_of(const Calibration* calibration, const model::Hparams& hparams,
                                               int layer);

/// The view of a method's parts when a prompt has passed through a layer, without the results of its observers. All
/// arguments outlive the view.
policy::LayerView view_of(const model::Hparams& hparams, int layer, const cache::LayerScratch& scratch,
                          const policy::LayerCalibration& calibration = no_calibration());
/// Facts for observers of a layer before a prompt comes to it, after `past` tokens.
policy::ObservedLayer observed_layer(const model::Hparams& hparams, int layer, const PromptSize& size, int past,
                                     const policy::LayerCalibration& calibration = no_calibration());

/// The most query heads and KV heads that a layer has.
struct MostHeads {
  int query = 0;
  int kv = 0;
};
MostHeads most_heads(const model::Hparams& hparams);

/// The shape of a layer's lanes that `options` asks for. `spec` outlives it.
cache::LaneShape lane_shape(const CacheOptions& options, const model::LayerSpec& spec);
/// Bytes that one entry takes, with its share of the summary of a block.
std::size_t entry_and_summary_bytes(const cache::LaneShape& shape);
/// Bytes of the summaries of so many blocks of each KV head of each layer.
std::size_t summary_bytes(const CacheOptions& options, const model::Hparams& hparams, int blocks);
/// Bytes that one entry takes in each KV head of each layer without a window, together, with its share of summaries.
std::size_t entry_bytes(const CacheOptions& options, const model::Hparams& hparams);
/// Bytes that the layers with windows take after so many tokens.
std::size_t window_bytes(const CacheOptions& options, const model::Hparams& hparams, int tokens);
/// Bytes by which they can grow when so many tokens more come, of which up to `together` in one step.
std::size_t window_growth_bytes(const CacheOptions& options, const model::Hparams& hparams, int tokens, int more,
                                int together);

/// Such a prompt as a layer has it.
policy::LayerPrompt prompt_of(const model::LayerSpec& spec, const PromptSize& size);
/// Of each layer without a window.
std::vector<policy::LayerPrompt> prompts_of(const model::Hparams& hparams, const PromptSize& size);

/// What is settled for such a prompt, [layer].
std::vector<policy::Terms> terms_of(const CacheOptions& options, const model::Hparams& hparams, const PromptSize& size);
/// What each layer may keep, [layer]. Throws UsageError when the budget is too small for the method, or for the
/// windows, and for a method that evicts where all layers have windows.
std::vector<policy::LayerBudget> layer_budgets(const CacheOptions& options, const model::Hparams& hparams,
                                               const PromptSize& size);
/// The least budget, in entries per KV head, with which the method works on a prompt in every layer that it has.
int least_budget(const policy::Method& method, const model::Hparams& hparams, int tokens);

/// Entries per KV head of a layer without a window that `options` allows after `tokens` tokens; `tokens` for methods
/// without a budget.
int budget_entries(const CacheOptions& options, const model::Hparams& hparams, int tokens);

}  // namespace winnow::engine
