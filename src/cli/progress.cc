// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <optional>

namespace winnow::cli {

namespace {

using Clock = std::chrono::steady_clock;

/// Work that is done sooner is not shown.
constexpr std::chrono::milliseconds kSoon{500};

}  // namespace

void show_progress(Session& session, const std::string& what) {
  if (isatty(STDERR_FILENO) == 0) return;
  session.on_progress([what, begin = std::optional<Clock::time_point>()](double share) mutable {
    if (!begin) begin = Clock::now();
    const bool shown = Clock::now() - *begin >= kSoon;
    if (shown) std::fprintf(stderr, "\r%s: %3.0f %%%s", what.c_str(), 100 * share, share >= 1 ? "\r\033[K" : "");
    if (shown) std::fflush(stderr);
    if (share >= 1) begin.reset();
  });
}

}  // namespace winnow::cli
