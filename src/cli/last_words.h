// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace winnow::cli {

/// Has the process end with one sentence and exit code 1 where it would otherwise be aborted: a mapped file is cut
/// while it is read (SIGBUS), ggml gives up, an exception cannot be passed on. For main() alone: the library leaves
/// signals and handlers to who uses it.
void install_last_words();

}  // namespace winnow::cli
