// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace winnow::eval {

/// Where files of the data folder come from, a sentence for each folder that these paths are in.
std::string origins_of(const std::vector<std::string>& paths);

}  // namespace winnow::eval
