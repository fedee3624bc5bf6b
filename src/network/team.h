// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace winnow::network {

/// Starts a team of `threads` threads for a moment before ggml does: ggml aborts where it cannot. Throws MemoryError
/// when they cannot all be started (memory for their stacks, a limit on processes), UsageError when ggml has no place
/// for so many.
void check_team(int threads);

}  // namespace winnow::network
