// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace winnow::device {

/// Sends the messages of ggml and libllama to the verbose log, line by line. Idempotent.
void forward_backend_log();

}  // namespace winnow::device
