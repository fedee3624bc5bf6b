// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "winnow/policy/observer.h"

namespace winnow::policy {

inline constexpr const char* kQueryRows = "query rows";

/// Some queries of a prompt with their attention outputs. Empty for a prompt with a past, because its queries have also
/// read the keys of the past.
ObserverPart<attention::QueryRows> observe_rows(std::string text,
                                                std::function<attention::QueryRowSet(const LayerPrompt&)> which);

}  // namespace winnow::policy
