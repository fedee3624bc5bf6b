// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "winnow/export.h"

namespace winnow {

/// All element types that KvType::parse() knows.
WINNOW_EXPORT std::span<const std::string_view> kv_type_names();

}  // namespace winnow
