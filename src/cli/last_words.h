// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace winnow::cli {

/// Ends the process with one sentence and exit code 1 instead of aborting: if a mapped file is truncated while it is
/// read (SIGBUS), if ggml aborts, or if an exception cannot be passed on. Only for main(): the library installs no
/// handlers.
void install_last_words();

}  // namespace winnow::cli
