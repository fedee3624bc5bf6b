// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace winnow::engine {

/// Throws UsageError for a grammar that libllama's parser would cut, recurse through, or never end with: a zero byte,
/// a size, groups within groups, or repetitions out of range. Says nothing about what else may be wrong with it.
void check_grammar(std::string_view text);

}  // namespace winnow::engine
