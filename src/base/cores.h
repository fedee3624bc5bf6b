// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>

namespace winnow {

/// Cores that this process may run on, which may be fewer than the machine has (containers, taskset), limited by its
/// CPU quota, rounded up; at least 1.
int usable_cores();

/// CPU quota, in cores, that the process shares with its siblings: the least of its control groups, version 2 or 1.
/// `root`: parent of `proc` and `sys`. Empty without a quota.
std::optional<double> cpu_quota(const std::filesystem::path& root = "/");

}  // namespace winnow
