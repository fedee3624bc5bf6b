// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace winnow {

/// A word as it is typed in a shell: in quotes where it needs them.
std::string shell_word(std::string_view text);

}  // namespace winnow
