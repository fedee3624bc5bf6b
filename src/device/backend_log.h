// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace winnow::device {

/// Sends the messages of ggml and libllama to the verbose log, line by line. Idempotent.
void forward_backend_log();

/// The last error that they reported; empty: none.
std::string last_backend_error();

}  // namespace winnow::device
