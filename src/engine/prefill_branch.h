// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "cache/scratch.h"
#include "engine/calibration.h"
#include "engine/requests.h"
#include "model/vocab.h"
#include "network/executor.h"
#include "winnow/session.h"

namespace winnow::engine {

/// The entries of a prompt in all layers without a window, ranked together.
struct Ranking {
  policy::Scores scores;          ///< [KV heads of all layers, layer by layer][n]
  int layers = 0;                 ///< whose scores are there
  std::vector<int> entries = {};  ///< what each head keeps; empty: not known yet
};

/// Results of passes before over a prompt, for one cache.
struct Shown {
  std::vector<Token> draft = {};  ///< what its passages repeat
  /// Null: each layer is compressed by what is seen of it. Without `entries`: this pass ranks, and fills no lanes. With
  /// them: it keeps these.
  std::shared_ptr<Ranking> ranking = {};

  policy::Reading reading() const;
};

/// The session that all branches of a prefill belong to.
struct PrefillSite {
  network::Executor& executor;
  const model::Hparams& hparams;
  const model::Vocab& vocab;
  MemoryAccount& account;
  const Calibration* calibration = nullptr;
  int past = 0;  ///< tokens that come before the prompts
};

/// One prompt of a prefill: the caches that it fills, and what their methods look at while it passes.
class PrefillBranch {
 public:
  /// `shown` [cache] or empty: nothing.
  PrefillBranch(const PrefillSite& site, const PromptSize& size, std::span<const CacheOptions> caches,
                std::span<const Shown> shown);

  int tokens() const { return size_.tokens; }
  /// Requests for which passages are read again after the prompt.
  std::span<const policy::ObserverRequestPtr> replays() const { return replays_; }
  /// Rows of the longest passage that is read again.
  int longest_passage() const;
  /// The prompt itself, before it comes to the first layer.
  void put(std::vector<Token> prompt);

  /// The prompt comes to a layer. The first one of those that read the same keys has them.
  void begin_layer(int layer);
  void add_observers(int kv_layer, std::vector<policy::Observer*>& out) const;
  policy::Observer* observer_of_replay(int kv_layer, std::size_t replay) const;
  /// The prompt has passed through all layers that read the same keys: fills the lanes of all caches. Throws
  /// MemoryError and Interrupted.
  void compress(int kv_layer, const cache::LayerScratch& scratch);

  std::span<const Cache> caches() const { return caches_; }
  std::vector<Cache> take_caches() { return std::move(caches_); }

 private:
  const policy::LayerCalibration& calibration(int layer) const;
  void compress(std::size_t cache, int kv_layer, const policy::LayerView& view);

  PrefillSite site_;
  PromptSize size_;
  CountedVector<TokenClass> classes_;  ///< [tokens]
  std::vector<Cache> caches_;
  std::vector<CachePass> passes_;                   ///< [cache]
  std::vector<std::vector<Token>> drafts_;          ///< [cache]
  std::vector<std::shared_ptr<Ranking>> rankings_;  ///< [cache]; null: none
  std::vector<policy::ObserverRequestPtr> replays_;
  std::map<int, policy::LayerObservers> observers_;  ///< by the layer whose keys are read
};

}  // namespace winnow::engine
