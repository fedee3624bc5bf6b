// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace winnow::eval {

/// Sources of files of the data folder, one sentence for each folder that the paths are in.
std::string origins_of(const std::vector<std::string>& paths);

}  // namespace winnow::eval
