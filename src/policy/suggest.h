// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace winnow::policy {

/// The nearest known name, or null if none shares at least half of its letters.
const std::string* nearest(std::string_view name, const std::vector<std::string>& known);

/// Text for errors: the nearest known name, if any, and all names.
std::string suggest(std::string_view name, const std::vector<std::string>& known);

}  // namespace winnow::policy
