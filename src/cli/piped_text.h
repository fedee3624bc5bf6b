// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace winnow::cli {

/// The text that a pipe, a socket or a file has for stdin; empty where that is empty, or a terminal or device. Waits
/// for the end, and says so when it takes long, since a pipe may have been left open by mistake. Throws what
/// read_text() throws.
std::string piped_text();

}  // namespace winnow::cli
