// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace winnow {

/// Recognises files that are not text by their first bytes. Returns a sentence with the kind and the command that makes
/// a text of the file `name`; empty if the bytes may be text.
std::string why_no_text(std::string_view bytes, const std::string& name);

/// Throws InputError for text that a model cannot read: empty, not UTF-8, or with zero bytes. A truncated last
/// character only causes a warning, since `head -c` leaves it.
void check_text(std::string_view text, const std::string& name);

}  // namespace winnow
