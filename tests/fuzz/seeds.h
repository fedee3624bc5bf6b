// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

namespace winnow::test {

/// Writes the seeds of a fuzz target, one file each. Each target defines this function.
void write_seeds(const std::filesystem::path& folder);

/// Writes one seed.
void write_seed(const std::filesystem::path& path, std::string_view bytes);

}  // namespace winnow::test
