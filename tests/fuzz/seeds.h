// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

namespace winnow::test {

/// Writes the inputs that a fuzz target starts from, one file each. Each target has its own.
void write_seeds(const std::filesystem::path& folder);

/// Writes one of them.
void write_seed(const std::filesystem::path& path, std::string_view bytes);

}  // namespace winnow::test
