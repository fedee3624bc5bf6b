// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace winnow {

/// All element types that KvType::parse() accepts.
std::span<const std::string_view> kv_type_names();

}  // namespace winnow
