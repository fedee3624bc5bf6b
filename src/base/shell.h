// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace winnow {

/// A word for a shell, quoted if necessary.
std::string shell_word(std::string_view text);

}  // namespace winnow
