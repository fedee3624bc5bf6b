// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "engine/layers.h"
#include "model/hparams.h"
#include "winnow/scheduler.h"
#include "winnow/session.h"

namespace winnow::engine {

/// Cache options with at least the budget that the method needs for `tokens` tokens. REQUIRES: a method with a budget.
CacheOptions with_enough(const CacheOptions& options, const model::Hparams& hparams, int tokens);

/// Options for compressing later tokens of a sequence as a prompt of their own. Nullopt if they are only appended: the
/// budget holds them all, or the method evicts nothing or evicts at every step.
std::optional<CacheOptions> options_later(const CacheOptions& options, const model::Hparams& hparams, int tokens);

/// A part of a text that is compressed by itself.
struct Stage {
  std::size_t first = 0;
  std::size_t end = 0;
  std::optional<CacheOptions> keep;  ///< of the stage; nullopt: its tokens are only appended
  std::size_t asked = 0;             ///< as RequestText::asked

  int tokens() const { return static_cast<int>(end - first); }
  PromptSize size() const { return {tokens(), static_cast<int>(asked)}; }
};

/// Stages of a request without a cache of its own; at least one.
std::vector<Stage> stages_of(const RequestText& text, const CacheOptions& keep, const model::Hparams& hparams);

}  // namespace winnow::engine
