// SPDX-License-Identifier: Apache-2.0
#pragma once

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
  int most;
  std::optional<int> percent;  ///< of the prompt that it is at most

  /// At least 1, and maybe more than the prompt has.
  int of(int tokens) const;
  /// "the last 32 tokens", where `what` is "tokens".
  std::string text(std::string_view what) const;
};

/// `window`, whose effect the caller states, and `window-share`.
std::vector<Option> window_length_options(std::string effect);
WindowLength window_length(const Options& options);

/// `window`, `window-share`, `kernel`, `pool`, `pad`, `gqa`, and then `more`.
std::vector<Option> window_options(std::vector<Option> more = {});

/// SnapKV itself, uniform over layers and heads. Throws UsageError for an even kernel.
Method window_method(const Options& options);

}  // namespace winnow::policy
