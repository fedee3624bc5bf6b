// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace winnow::network {

/// Briefly starts a team of `threads` threads before ggml does, since ggml aborts if it cannot. Throws MemoryError if
/// they cannot all be started (memory for stacks, a limit on processes), UsageError if ggml does not support that many.
void check_team(int threads);

}  // namespace winnow::network
