// SPDX-License-Identifier: Apache-2.0
#include "engine/prefill_branch.h"

#include <algorithm>
#include <utility>

#include "base/as_size.h"
#include "engine/cache_bytes.h"
#include "engine/layers.h"
#include "engine/model_impl.h"
#include "engine/output_projection.h"
#include "engine/sequence.h"
#include "engine/session_impl.h"
#include "policy/plan.h"

namespace winnow::engine {

namespace {

/// KV heads of all layers without a window.
int ranked_heads(const model::Hparams& hparams) {
  int heads = 0;
  for (const auto& prompt : prompts_of(hparams, 1)) heads += prompt.kv_heads;
  return heads;
}

void put_heads(const policy::Scores& scores, int first, policy::Scores& to) {
  for (int head = 0; head < scores.heads(); ++head) std::ranges::copy(scores.head(head), to.head(first + head).begin());
}

void add_scores(const policy::ScoreParts& parts, int first, Ranking& to) {
  put_heads(parts.scores, first, to.scores);
  put_heads(parts.second, first, to.second);
  ++to.layers;
}

/// Ranks the entries of all layers. `view`: any layer.
void rank(const policy::Method& method, const policy::LayerView& view, Ranking& ranking) {
  auto& [scores, second, layers, entries] = ranking;
  scores = policy::joined(method, {std::move(scores), std::move(second)}, view.budget);
  second = {0, 0};
  entries = policy::spread_over_model(method, view, view.budget, scores);
}

/// The plan of a layer whose heads begin at `first` in the ranking.
cache::KeepPlan plan_by(const Ranking& ranking, int first, const policy::SequenceLayer& layer,
                        const policy::LayerView& view) {
  policy::Scores scores(view.shape.kv_heads, view.tokens());
  policy::LayerBudget budget = layer.budget();
  for (int head = 0; head < scores.heads(); ++head) {
    std::ranges::copy(ranking.scores.head(first + head), scores.head(head).begin());
    budget.heads.push_back(ranking.entries[as_size(first + head)]);
  }
  return policy::plan(layer.method(), view, layer.terms().budget, budget, scores);
}

/// Index of the layer's first head among the heads that are ranked together.
int first_head(const model::Hparams& hparams, int layer) {
  int heads = 0;
  for (int l = 0; l < layer; ++l) {
    if (hparams.layer(l).window == 0) heads += hparams.layer(l).n_head_kv;
  }
  return heads;
}

}  // namespace

Ranking::Ranking(const policy::Method& method, const model::Hparams& hparams, int tokens)
    : scores(ranked_heads(hparams), tokens), second(method.selection.second_score ? scores.heads() : 0, tokens) {}

std::size_t Ranking::bytes(const model::Hparams& hparams, int tokens) {
  return as_size(ranked_heads(hparams)) * as_size(tokens) * sizeof(float);
}

std::size_t Ranking::second_bytes(const policy::Method& method, const model::Hparams& hparams, int tokens) {
  return method.selection.second_score ? bytes(hparams, tokens) : 0;
}

PrefillBranch::PrefillBranch(Session::Impl& session, const PrefillPlan::Branch& plan, int past,
                             std::span<const std::shared_ptr<Ranking>> rankings)
    : session_(session), plan_(plan), past_(past), rankings_(rankings.begin(), rankings.end()) {
  for (const auto& cache : plan.prompt.caches)
    caches_.emplace_back(std::make_unique<Sequence>(cache.options, session.hparams, session.account, plan.prompt.size));
}

std::size_t PrefillBranch::class_bytes(const PromptPass& prompt) {
  return as_size(prompt.size.tokens) * sizeof(TokenClass);
}

std::size_t PrefillBranch::lane_bytes(const model::Hparams& hparams, const PromptPass& prompt) {
  std::size_t out = 0;
  for (const auto& cache : prompt.caches) out += cache_bytes(cache.options, hparams, prompt.size);
  return out;
}

std::size_t PrefillBranch::plan_bytes(const model::Hparams& hparams, const PromptPass& prompt) {
  std::size_t most = 0;
  for (const auto& cache : prompt.caches) {
    const auto entries = layer_entries(cache.options, hparams, prompt.size);
    for (int layer = 0; layer < hparams.n_kv_layer; ++layer) {
      const auto& method = method_of(cache.options, hparams.layer(layer));
      most = std::max(
          most, policy::plan_bytes(method, shape_of(hparams, layer), prompt.size.tokens, entries[as_size(layer)]));
    }
  }
  return most;
}

void PrefillBranch::put(const std::vector<Token>& prompt) {
  const auto& vocab = session_.model->impl().vocab;
  classes_.reserve(prompt.size());
  for (const Token token : prompt) classes_.push_back(vocab.class_of(token));
  for (auto& cache : caches_) cache.impl().tokens = prompt;
}

const policy::LayerCalibration& PrefillBranch::calibration(int layer) const {
  return calibration_of(session_.calibration ? &*session_.calibration : nullptr, session_.hparams, layer);
}

policy::ObservedLayer PrefillBranch::observed(int layer) const {
  const int kv_layer = session_.hparams.kv_layer(layer);
  return observed_layer(session_.hparams, layer, plan_.prompt.size, past_, calibration(kv_layer));
}

void PrefillBranch::begin_layer(int layer) {
  const auto layer_now = observed(layer);
  const int kv_layer = layer_now.keys_of;
  if (kv_layer == layer) {
    const auto kind = as_size(session_.hparams.kind_of[as_size(layer)]);
    observers_.try_emplace(layer, layer_now, plan_.requests[kind]);
  }
  observers_.at(kv_layer).begin_layer(layer_now);
}

void PrefillBranch::begin_observers(int kv_layer, KnownText& known) const {
  observers_.at(kv_layer).for_each([&](const policy::ObserverRequest& request, policy::Observer& observer) {
    known.begin_observer(kv_layer, request, observer);
  });
}

void PrefillBranch::add_observers(int kv_layer, int end, std::vector<policy::Observer*>& out) const {
  observers_.at(kv_layer).add_to(out, end);
}

policy::Observer* PrefillBranch::observer_of_replay(int kv_layer, std::size_t replay) const {
  return observers_.at(kv_layer).of_replay(*plan_.replays[replay].request);
}

void PrefillBranch::compress(int kv_layer, const cache::LayerScratch& scratch) {
  auto& observers = observers_.at(kv_layer);
  observers.end_layer({kv_layer, scratch, OutputProjection(session_.executor)});
  for (std::size_t i = 0; i < caches_.size(); ++i) {
    auto view = view_of(session_.hparams, kv_layer, scratch, calibration(kv_layer));
    view.classes = classes_;
    view.question = plan_.prompt.size.question;
    view.budget = caches_[i].impl().layer(kv_layer).terms().budget;
    view.results = observers.results_for(i);
    compress(i, kv_layer, view);
  }
  observers_.erase(kv_layer);
}

void PrefillBranch::compress(std::size_t cache, int kv_layer, const policy::LayerView& view) {
  auto& layer = caches_[cache].impl().layer(kv_layer);
  const bool has_window = view.shape.window > 0;
  const auto of_pass = plan_.prompt.caches[cache].reading;
  const auto reading = has_window ? policy::Reading::whole : of_pass;
  if (has_window && of_pass == policy::Reading::ranking) return;
  cache::KeepPlan plan;
  if (reading == policy::Reading::whole) {
    plan = policy::plan(layer.method(), view, view.budget, layer.budget());
  } else if (reading == policy::Reading::keeping) {
    plan = plan_by(*rankings_[cache], first_head(session_.hparams, kv_layer), layer, view);
  } else {
    auto& ranking = *rankings_[cache];
    add_scores(policy::score_parts(layer.method(), view, view.budget), first_head(session_.hparams, kv_layer), ranking);
    if (ranking.layers == session_.hparams.n_global) rank(layer.method(), view, ranking);
    return;
  }
  const Charge counted(session_.account, plan.bytes());
  layer.commit(plan, view);
}

}  // namespace winnow::engine
