// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/mapped_range.h"

namespace winnow {

/// Ranges at which this process has mapped a file, given by its real path, as listed by the system: for maps made by a
/// library. Empty if the system has no such list.
std::vector<std::unique_ptr<MappedRange>> maps_of_file(const std::string& path);

}  // namespace winnow
