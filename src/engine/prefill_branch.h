// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "cache/scratch.h"
#include "engine/known_text.h"
#include "engine/prefill_plan.h"
#include "model/hparams.h"
#include "winnow/session.h"

namespace winnow::engine {

/// Scores of a prompt's entries in all layers without a window, to rank them together.
struct Ranking {
  Ranking(const policy::Method& method, const model::Hparams& hparams, int tokens);
  /// Bytes of the scores.
  static std::size_t bytes(const model::Hparams& hparams, int tokens);
  /// Bytes of second scores, until all layers have been ranked.
  static std::size_t second_bytes(const policy::Method& method, const model::Hparams& hparams, int tokens);

  policy::Scores scores;          ///< [KV heads of all layers, layer by layer][n]
  policy::Scores second;          ///< the same, until they have joined the scores; no heads: there are none
  int layers = 0;                 ///< layers that have added their scores
  std::vector<int> entries = {};  ///< number of entries that each head keeps; empty: not known yet
};

/// One prompt of a prefill: its caches and the observers of their methods.
class PrefillBranch {
 public:
  /// `rankings`: [cache], null for a cache without a ranking; empty if no cache has one. `session` and `plan` outlive
  /// it. Throws UsageError if a budget is too small for its method.
  PrefillBranch(Session::Impl& session, const PrefillPlan::Branch& plan, int past,
                std::span<const std::shared_ptr<Ranking>> rankings);
  /// Bytes of the lanes of its caches.
  static std::size_t lane_bytes(const model::Hparams& hparams, const PromptPass& prompt);
  /// Bytes of its tokens' classes.
  static std::size_t class_bytes(const PromptPass& prompt);
  /// Bytes of the largest KeepPlan; one exists at a time.
  static std::size_t plan_bytes(const model::Hparams& hparams, const PromptPass& prompt);

  int tokens() const { return plan_.prompt.size.tokens; }
  /// Sets the prompt's tokens, before the first layer.
  void put(const std::vector<Token>& prompt);

  /// Begins a layer. Observers are created by the first of the layers that read the same keys.
  void begin_layer(int layer);
  /// Lets the observers continue after the known tokens, when they have begun a layer.
  void begin_observers(int kv_layer, KnownText& known) const;
  void add_observers(int kv_layer, int end, std::vector<policy::Observer*>& out) const;
  policy::Observer* observer_of_replay(int kv_layer, std::size_t replay) const;
  /// Fills the lanes of all caches when the prompt has passed through all layers that read the same keys. Throws
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
  int past_;                           ///< number of tokens before the prompt
  CountedVector<TokenClass> classes_;  ///< [tokens]
  std::vector<Cache> caches_;
  std::vector<std::shared_ptr<Ranking>> rankings_;   ///< [cache] or empty
  std::map<int, policy::LayerObservers> observers_;  ///< by the layer that stores the keys
};

}  // namespace winnow::engine
