// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "cache/scratch.h"
#include "engine/prefill_plan.h"
#include "model/hparams.h"
#include "winnow/session.h"

namespace winnow::engine {

/// The entries of a prompt in all layers without a window, ranked together.
struct Ranking {
  Ranking(const model::Hparams& hparams, int tokens);
  static std::size_t bytes(const model::Hparams& hparams, int tokens);

  policy::Scores scores;          ///< [KV heads of all layers, layer by layer][n]
  int layers = 0;                 ///< whose scores are there
  std::vector<int> entries = {};  ///< what each head keeps; empty: not known yet
};

/// One prompt of a prefill: the caches that it fills, and what their methods look at while it passes.
class PrefillBranch {
 public:
  /// `rankings` [cache] where one is made or followed, or empty. `session` and `plan` outlive it. Throws UsageError
  /// when a budget is too small for its method.
  PrefillBranch(Session::Impl& session, const PrefillPlan::Branch& plan, int past,
                std::span<const std::shared_ptr<Ranking>> rankings);
  /// Bytes of the lanes of its caches.
  static std::size_t lane_bytes(const model::Hparams& hparams, const PromptPass& prompt);
  /// Bytes of the classes of its tokens.
  static std::size_t class_bytes(const PromptPass& prompt);
  /// Bytes of the largest plan by which lanes are filled; there is one at a time.
  static std::size_t plan_bytes(const model::Hparams& hparams, const PromptPass& prompt);

  int tokens() const { return plan_.prompt.size.tokens; }
  /// The prompt itself, before it comes to the first layer.
  void put(const std::vector<Token>& prompt);

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
  policy::ObservedLayer observed(int layer) const;
  const policy::LayerCalibration& calibration(int layer) const;
  void compress(std::size_t cache, int kv_layer, const policy::LayerView& view);

  Session::Impl& session_;
  const PrefillPlan::Branch& plan_;
  int past_;                           ///< tokens that come before the prompt
  CountedVector<TokenClass> classes_;  ///< [tokens]
  std::vector<Cache> caches_;
  std::vector<std::shared_ptr<Ranking>> rankings_;   ///< [cache] or empty
  std::map<int, policy::LayerObservers> observers_;  ///< by the layer whose keys are read
};

}  // namespace winnow::engine
