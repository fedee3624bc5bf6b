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

/// The layers of a model as attention, caches and methods see them.
namespace winnow::engine {

struct Calibration;

/// `hparams` outlives it.
attention::Shape shape_of(const model::Hparams& hparams, int layer);

cache::KvHeads kv_heads_of(const model::LayerSpec& spec);
/// KV heads of each kind of layer, which a scratch must have room for.
std::vector<cache::KvHeads> kv_heads_of(const model::Hparams& hparams);

/// The method of a layer: that of `options`, unless the layer has a window.
const policy::Method& method_of(const CacheOptions& options, const model::LayerSpec& spec);
/// The first layer without a window, or layer 0 if all have one.
int first_global(const model::Hparams& hparams);

/// Sizes of a prompt that are known before it is read.
struct PromptSize {
  PromptSize(int all, int last = 0) : tokens(all), question(last) {}  // NOLINT(google-explicit-constructor)

  int tokens;
  int question;  ///< the last tokens that are the question; 0: not known
};

/// The empty calibration of a session without one.
const policy::LayerCalibration& no_calibration();
/// The calibration of a layer; empty for layers with windows.
const policy::LayerCalibration& calibration_of(const Calibration* calibration, const model::Hparams& hparams,
                                               int layer);

/// The view that a method's parts get when a prompt has passed through a layer, without results of observers. All
/// arguments outlive the view.
policy::LayerView view_of(const model::Hparams& hparams, int layer, const cache::LayerScratch& scratch,
                          const policy::LayerCalibration& calibration = no_calibration());
/// Facts for observers of a layer before a prompt reaches it. `past`: number of tokens before the prompt.
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
/// Bytes of one entry, with its share of a block's summary.
std::size_t entry_and_summary_bytes(const cache::LaneShape& shape);
/// Bytes of the summaries of `blocks` blocks of each KV head of each layer.
std::size_t summary_bytes(const CacheOptions& options, const model::Hparams& hparams, int blocks);
/// Bytes of one entry in each KV head of each layer without a window, in total, with its share of summaries.
std::size_t entry_bytes(const CacheOptions& options, const model::Hparams& hparams);
/// Bytes of the layers with windows after `tokens` tokens.
std::size_t window_bytes(const CacheOptions& options, const model::Hparams& hparams, int tokens);
/// Bytes by which the layers with windows can grow while `more` tokens are appended, up to `together` in one step.
std::size_t window_growth_bytes(const CacheOptions& options, const model::Hparams& hparams, int tokens, int more,
                                int together);

/// The prompt as a layer sees it.
policy::LayerPrompt prompt_of(const model::LayerSpec& spec, const PromptSize& size);
/// Prompts of all layers without a window.
std::vector<policy::LayerPrompt> prompts_of(const model::Hparams& hparams, const PromptSize& size);

/// Terms for a prompt of this size, [layer].
std::vector<policy::Terms> terms_of(const CacheOptions& options, const model::Hparams& hparams, const PromptSize& size);
/// The budget of each layer, [layer]. Throws UsageError if the budget is too small for the method or for the windows,
/// and for a method that evicts in a model whose layers all have windows.
std::vector<policy::LayerBudget> layer_budgets(const CacheOptions& options, const model::Hparams& hparams,
                                               const PromptSize& size);
/// The smallest budget, in entries per KV head, with which the method works on a prompt in every layer.
int least_budget(const policy::Method& method, const model::Hparams& hparams, int tokens);

/// The budget of `options` in entries per KV head of a layer without a window, after `tokens` tokens. Methods without a
/// budget have `tokens`.
int budget_entries(const CacheOptions& options, const model::Hparams& hparams, int tokens);

}  // namespace winnow::engine
