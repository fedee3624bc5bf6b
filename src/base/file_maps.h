// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/mapped_range.h"

namespace winnow {

/// Ranges of the maps that this process has of a file, by its real path, as the system lists them: for maps that a
/// library has made. Empty where the system has no list.
std::vector<std::unique_ptr<MappedRange>> maps_of_file(const std::string& path);

}  // namespace winnow
