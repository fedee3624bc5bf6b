// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "winnow/policy/method.h"
#include "winnow/policy/options.h"

/// The family of SnapKV: the attention of the prompt's last queries, pooled.
namespace winnow::policy {

/// How many of a prompt's last tokens a method observes and always keeps.
struct WindowLength {
  std::optional<int> most;     ///< none: as many as the question has, but no more than half of the budget
  std::optional<int> percent;  ///< of the prompt that it is at most

  /// Always kept tokens, maybe more than the prompt has.
  int kept(const LayerPrompt& prompt, int budget) const;
  /// Observed queries: as many, but at least 1.
  int observed(const LayerPrompt& prompt, int budget) const { return std::max(1, kept(prompt, budget)); }
  /// The fewest that are always kept, with the smallest budget.
  int least(const LayerPrompt& prompt) const { return kept(prompt, 1); }
  /// "the last 32 tokens", where `what` is "tokens".
  std::string text(std::string_view what) const;
};

/// `window`, whose effect the caller states, and `window-share`.
std::vector<Option> window_length_options(std::string effect, std::string window = "32");
WindowLength window_length(const Options& options);

/// `rows`: what is made of the attention of the window's queries.
Option rows_option();
attention::Reduction reduction_from(const std::string& name);

/// `gqa`
Option gqa_option();

/// Where a method's defaults differ from SnapKV's.
struct WindowDefaults {
  std::string window = "32";
  int kernel = 7;
  std::string weights = "none";
};

/// `window`, `window-share`, `rows`, `weights`, `kernel`, `pool`, `pad`, `gqa`, and then `more`.
std::vector<Option> window_options(std::vector<Option> more = {}, const WindowDefaults& defaults = {});

/// SnapKV itself, uniform over layers and heads. Throws UsageError for an even kernel.
Method window_method(const Options& options);

}  // namespace winnow::policy
