// SPDX-License-Identifier: Apache-2.0
#include "engine/prefill_branch.h"

#include <algorithm>
#include <utility>

#include "base/as_size.h"
#include "engine/output_projection.h"
#include "engine/replay.h"
#include "engine/sequence.h"
#include "policy/plan.h"

namespace winnow::engine {

namespace {

void add_scores(const policy::Scores& scores, int first, Ranking& to) {
  for (int head = 0; head < scores.heads(); ++head)
    std::ranges::copy(scores.head(head), to.scores.head(first + head).begin());
  ++to.layers;
}

/// The plan of a layer whose heads are those from `first` on.
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

/// The layer's first head, of the heads of layers without a window that are ranked together.
int first_head(const model::Hparams& hparams, int layer) {
  int heads = 0;
  for (int l = 0; l < layer; ++l) {
    if (hparams.layer(l).window == 0) heads += hparams.layer(l).n_head_kv;
  }
  return heads;
}

}  // namespace

policy::Reading Shown::reading() const {
  if (!ranking) return policy::Reading::whole;
  return ranking->entries.empty() ? policy::Reading::ranking : policy::Reading::keeping;
}

PrefillBranch::PrefillBranch(const PrefillSite& site, const PromptSize& size, std::span<const CacheOptions> caches,
                             std::span<const Shown> shown)
    : site_(site), size_(size) {
  for (std::size_t i = 0; i < caches.size(); ++i) {
    const Shown& before = shown.empty() ? Shown() : shown[i];
    caches_.emplace_back(std::make_unique<Sequence>(caches[i], site.hparams, site.account, size));
    passes_.push_back({caches[i], before.reading()});
    drafts_.push_back(before.draft);
    rankings_.push_back(before.ranking);
  }
  replays_ = replays_of(passes_, site.hparams, size, site.past, drafts_);
}

int PrefillBranch::longest_passage() const {
  int most = 0;
  for (const auto& request : replays_) {
    for (const auto& passage : request->replay()->passages) most = std::max(most, rows_of(passage, site_.vocab));
  }
  return most;
}

void PrefillBranch::put(std::vector<Token> prompt) {
  classes_.reserve(prompt.size());
  for (const Token token : prompt) classes_.push_back(site_.vocab.class_of(token));
  for (auto& cache : caches_) cache.impl().tokens = prompt;
}

const policy::LayerCalibration& PrefillBranch::calibration(int layer) const {
  return calibration_of(site_.calibration, site_.hparams, layer);
}

void PrefillBranch::begin_layer(int layer) {
  const int kv_layer = site_.hparams.kv_layer(layer);
  const auto& spec = site_.hparams.layer(kv_layer);
  const auto observed = observed_layer(site_.hparams, layer, size_, site_.past, calibration(kv_layer));
  if (kv_layer == layer) {
    std::vector<std::vector<policy::ObserverRequestPtr>> requests;
    for (std::size_t i = 0; i < passes_.size(); ++i)
      requests.push_back(requests_of(passes_[i], site_.hparams, spec, size_, site_.past, drafts_[i]));
    observers_.try_emplace(layer, observed, requests);
  }
  observers_.at(kv_layer).begin_layer(observed);
}

void PrefillBranch::add_observers(int kv_layer, std::vector<policy::Observer*>& out) const {
  observers_.at(kv_layer).add_to(out);
}

policy::Observer* PrefillBranch::observer_of_replay(int kv_layer, std::size_t replay) const {
  return observers_.at(kv_layer).of_replay(*replays_[replay]);
}

void PrefillBranch::compress(int kv_layer, const cache::LayerScratch& scratch) {
  auto& observers = observers_.at(kv_layer);
  observers.end_layer({kv_layer, scratch, OutputProjection(site_.executor)});
  for (std::size_t i = 0; i < caches_.size(); ++i) {
    auto view = view_of(site_.hparams, kv_layer, scratch, calibration(kv_layer));
    view.classes = classes_;
    view.question = size_.question;
    view.budget = caches_[i].impl().layer(kv_layer).terms().budget;
    view.shown = observers.shown_to(i);
    compress(i, kv_layer, view);
  }
  observers_.erase(kv_layer);
}

void PrefillBranch::compress(std::size_t cache, int kv_layer, const policy::LayerView& view) {
  auto& layer = caches_[cache].impl().layer(kv_layer);
  const bool has_window = view.shape.window > 0;
  const auto reading = has_window ? policy::Reading::whole : passes_[cache].reading;
  if (has_window && passes_[cache].reading == policy::Reading::ranking) return;
  cache::KeepPlan plan;
  if (reading == policy::Reading::whole) {
    plan = policy::plan(layer.method(), view, view.budget, layer.budget());
  } else if (reading == policy::Reading::keeping) {
    plan = plan_by(*rankings_[cache], first_head(site_.hparams, kv_layer), layer, view);
  } else {
    auto& ranking = *rankings_[cache];
    add_scores(policy::scores_of(layer.method(), view, view.budget), first_head(site_.hparams, kv_layer), ranking);
    if (ranking.layers == site_.hparams.n_global)
      ranking.entries = policy::spread_over_model(layer.method(), view, view.budget, ranking.scores);
    return;
  }
  const Charge counted(site_.account, plan.bytes());
  layer.commit(plan, view);
}

}  // namespace winnow::engine
