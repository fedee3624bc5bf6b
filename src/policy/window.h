// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "winnow/policy/method.h"
#include "winnow/policy/options.h"

/// The family of SnapKV: the attention of the prompt's last queries, pooled.
namespace winnow::policy {

/// `window`, `kernel`, `pool`, `pad`, `gqa`, and then `more`.
std::vector<Option> window_options(std::vector<Option> more = {});

/// SnapKV itself, uniform over layers and heads. Throws UsageError for an even kernel.
Method window_method(const Options& options);

}  // namespace winnow::policy
