// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "engine/layers.h"
#include "policy/observers/layer_observers.h"

/// Requests of caches' methods to observers of a prompt.
namespace winnow::engine {

/// A cache, and what a pass over a prompt does for it.
struct CachePass {
  CacheOptions options;
  policy::Reading reading = policy::Reading::whole;
};

/// One pass that does everything.
std::vector<CachePass> whole_passes(std::span<const CacheOptions> caches);

/// Requests of a cache's method in a layer of a kind, by place.
std::vector<policy::ObserverRequestPtr> requests_of(const CachePass& cache, const model::Hparams& hparams,
                                                    const model::LayerSpec& spec, const PromptSize& size, int past,
                                                    std::span<const Token> draft = {});

/// Requests of some caches that have passages of a prompt read again, without repeats.
/// `drafts` [cache] or empty, before they are known: then requests that repeat drafts are all taken to be different.
std::vector<policy::ObserverRequestPtr> replays_of(std::span<const CachePass> caches, const model::Hparams& hparams,
                                                   const PromptSize& size, int past,
                                                   std::span<const std::vector<Token>> drafts = {});

}  // namespace winnow::engine
