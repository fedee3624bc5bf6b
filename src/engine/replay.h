// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "model/hparams.h"
#include "model/vocab.h"
#include "policy/views.h"
#include "winnow/session.h"

namespace winnow::engine {

/// The passages that a cache's method reads again after a prompt of so many tokens; none where everything stays.
std::vector<policy::Passage> passages_of(const CacheOptions& options, const model::Hparams& hparams, int tokens);

/// The tokens of a passage of `prompt`.
std::vector<Token> tokens_of(const policy::Passage& passage, std::span<const Token> prompt, const model::Vocab& vocab);

/// Rows that some caches read again after a prompt.
struct ReplaySize {
  int all = 0;
  int longest = 0;  ///< of one passage
  int times = 0;    ///< different lists of passages, each with an observation of its own
};
ReplaySize replay_size(std::span<const CacheOptions> caches, const model::Hparams& hparams, const model::Vocab& vocab,
                       int tokens);

}  // namespace winnow::engine
