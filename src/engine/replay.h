// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "model/hparams.h"
#include "model/vocab.h"
#include "policy/views.h"
#include "winnow/session.h"

namespace winnow::engine {

/// What a cache's method reads again after a prompt of so many tokens; nothing where everything stays.
policy::Replay replay_of(const CacheOptions& options, const model::Hparams& hparams, int tokens);

/// The tokens of a passage of `prompt`, with those of `draft` that it repeats.
std::vector<Token> tokens_of(const policy::Passage& passage, std::span<const Token> prompt,
                             std::span<const Token> draft, const model::Vocab& vocab);

/// Rows of a passage, at most.
int rows_of(const policy::Passage& passage, const model::Vocab& vocab);

/// Rows that some caches read again after a prompt, at most.
struct ReplaySize {
  struct Passage {
    int rows = 0;
    attention::KeyRange recorded = {};
  };
  std::vector<Passage> passages;
  int times = 0;  ///< different replays, each with an observation of its own

  int all() const;
  int longest() const;
};
ReplaySize replay_size(std::span<const CacheOptions> caches, const model::Hparams& hparams, const model::Vocab& vocab,
                       int tokens);

}  // namespace winnow::engine
