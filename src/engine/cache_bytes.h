// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "engine/layers.h"
#include "model/hparams.h"
#include "winnow/session.h"

/// Sizes of caches before they are filled.
namespace winnow::engine {

/// Number of entries that a prompt of this size keeps, over all heads of each layer, [layer].
std::vector<int> layer_entries(const CacheOptions& options, const model::Hparams& hparams, const PromptSize& size);

/// Bytes of the cache of a prompt of this size, summaries included.
std::size_t cache_bytes(const CacheOptions& options, const model::Hparams& hparams, const PromptSize& size);

/// Maximum number of entries of one layer, over all heads, that a later prompt reads from such a cache.
std::size_t rows_kept(const CacheOptions& options, const model::Hparams& hparams, const PromptSize& size);

/// Bytes by which a cache of `tokens` tokens can grow while `more` tokens are appended.
std::size_t growth_bytes(const CacheOptions& options, const model::Hparams& hparams, int tokens, int more);

}  // namespace winnow::engine
