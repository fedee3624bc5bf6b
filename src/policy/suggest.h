// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace winnow::policy {

/// The nearest of the known names. REQUIRES: there is one.
const std::string& nearest(std::string_view name, const std::vector<std::string>& known);

/// `the nearest of the known names, and all of them`, for errors.
std::string suggest(std::string_view name, const std::vector<std::string>& known);

}  // namespace winnow::policy
