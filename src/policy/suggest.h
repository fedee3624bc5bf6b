// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace winnow::policy {

/// The nearest of the known names, if one has at least half of its letters in common; otherwise null.
const std::string* nearest(std::string_view name, const std::vector<std::string>& known);

/// The nearest of the known names if there is one, and all of them, for errors.
std::string suggest(std::string_view name, const std::vector<std::string>& known);

}  // namespace winnow::policy
