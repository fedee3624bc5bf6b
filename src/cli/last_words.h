// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace winnow::cli {

/// Ends the process with one sentence and exit code 1 where it would otherwise be aborted: a mapped file is cut while
/// it is read (SIGBUS), ggml aborts, an exception cannot be passed on. For main() alone: the library installs no
/// handlers.
void install_last_words();

}  // namespace winnow::cli
