#pragma once

#include <string>
#include <string_view>

namespace winnow::policy {

/// What a user typed, fit for an error: bytes that are no printable ASCII as \xNN, and no more than the first 80 of a
/// long text.
std::string printable(std::string_view text);

}  // namespace winnow::policy
