// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "engine/layers.h"
#include "model/hparams.h"
#include "winnow/session.h"

/// Sizes of caches before they are filled.
namespace winnow::engine {

/// Entries that all heads of each layer keep together of such a prompt, [layer].
std::vector<int> layer_entries(const CacheOptions& options, const model::Hparams& hparams, const PromptSize& size);

/// Bytes of what is kept of such a prompt, with its summaries.
std::size_t cache_bytes(const CacheOptions& options, const model::Hparams& hparams, const PromptSize& size);

/// Entries that a later prompt reads of one layer of what is kept of such a prompt, all heads together, at most.
std::size_t rows_kept(const CacheOptions& options, const model::Hparams& hparams, const PromptSize& size);

/// Bytes by which a cache of `tokens` tokens can grow when so many more come.
std::size_t growth_bytes(const CacheOptions& options, const model::Hparams& hparams, int tokens, int more);

}  // namespace winnow::engine
