// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>

namespace winnow {

/// Cores that this process may run on, which may be fewer than the machine has (a container, taskset), and no more than
/// its CPU quota pays for, rounded up; at least 1.
int usable_cores();

/// How many cores' time the process and its siblings get together: the least quota of its control groups, of version 2
/// or 1. `root`: where `proc` and `sys` are. Nothing where there is no quota.
std::optional<double> cpu_quota(const std::filesystem::path& root = "/");

}  // namespace winnow
