// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace winnow {

/// A sentence about bytes that are no text, by how they begin: what they are, and the command that makes a text of the
/// file `name`. Empty: they may be a text.
std::string why_no_text(std::string_view bytes, const std::string& name);

/// Throws InputError for what cannot be read to a model as a text: nothing, bytes that are no UTF-8, zero bytes. A
/// character that is cut at the end is let through with a warning, since `head -c` cuts so.
void check_text(std::string_view text, const std::string& name);

}  // namespace winnow
