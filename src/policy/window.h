// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "winnow/policy/method.h"
#include "winnow/policy/options.h"

/// Methods of the SnapKV family: the attention of the prompt's last queries, pooled.
namespace winnow::policy {

/// Number of a prompt's last tokens that a method observes and always keeps.
struct WindowLength {
  std::optional<int> most;     ///< nullopt: the length of the question, within its share of the budget
  std::optional<int> percent;  ///< upper bound, as a share of the prompt
  int question_percent;        ///< of the budget: upper bound of the question's length

  /// Number of always kept tokens, possibly more than the prompt has.
  int kept(const LayerPrompt& prompt, int budget) const;
  /// Number of observed queries: the same, but at least 1.
  int observed(const LayerPrompt& prompt, int budget) const { return std::max(1, kept(prompt, budget)); }
  /// Number of always kept tokens with the smallest budget.
  int least(const LayerPrompt& prompt) const { return kept(prompt, 1); }
  /// Text such as "the last 32 tokens", if `what` is "tokens".
  std::string text(std::string_view what) const;
};

/// Options `window`, with the effect given by the caller, `window-share` and `question-share`.
std::vector<Option> window_length_options(std::string effect, std::string window = "32");
WindowLength window_length(const Options& options);

/// Option `rows`: how the attention of the window's queries is combined.
Option rows_option();
attention::Reduction reduction_from(const std::string& name);

/// Option `gqa`.
Option gqa_option();

/// Defaults of SnapKV, for methods that differ from them.
struct WindowDefaults {
  std::string window = "32";
  int kernel = 7;
  std::string weights = "none";
};

/// Options `window`, `window-share`, `question-share`, `rows`, `weights`, `kernel`, `pool`, `pad`, `gqa`, and then
/// `more`.
std::vector<Option> window_options(std::vector<Option> more = {}, const WindowDefaults& defaults = {});

/// SnapKV itself, uniform over layers and heads. Throws UsageError for an even kernel.
Method window_method(const Options& options);

}  // namespace winnow::policy
