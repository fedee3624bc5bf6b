// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace winnow::cli {

/// The text of stdin if it is a pipe, a socket or a file; "" if that is empty, or stdin is a terminal or device. Waits
/// for the end, and reports a long wait, since a pipe may have been left open by mistake. Throws what read_text()
/// throws.
std::string piped_text();

}  // namespace winnow::cli
