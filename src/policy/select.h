#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policy/method.h"

namespace winnow::policy {

/// The `count` best of the evictable entries of one head (indices sinks … n - recent - 1), ascending. Linear in n. Equal scores: the later
/// position; a score that is no number is worse than any.
std::vector<std::int32_t> top(std::span<const float> scores, int count, const Forced& forced);

/// What one head keeps: its sinks, `count` selected entries, its recent ones; ascending.
std::vector<std::int32_t> keep(std::span<const float> scores, int tokens, int count, const Forced& forced);

}  // namespace winnow::policy
