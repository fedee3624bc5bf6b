// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "winnow/policy/observer.h"

namespace winnow::policy {

inline constexpr const char* kQueryRows = "query rows";

/// Some queries of a prompt as they are, with what attention gave for them. Of a prompt that comes after others there
/// are none: its queries have read more than its keys.
ObserverPart<attention::QueryRows> observe_rows(std::string text,
                                                std::function<attention::ObservedRows(const LayerPrompt&)> which);

}  // namespace winnow::policy
