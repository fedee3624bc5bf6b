// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <optional>

#include "cli/wording.h"

namespace winnow::cli {

namespace {

/// Work that is done sooner is not shown.
constexpr std::chrono::milliseconds kSoon{500};

}  // namespace

std::string time_left(Clock::time_point begin, double done) {
  return done > 0 ? fmt::format(", {} left", duration(ms_since(begin) / 1000 * (1 - done) / done)) : "";
}

void show_progress(Session& session, const std::string& what) {
  if (isatty(STDERR_FILENO) == 0) return;
  session.on_progress([what, begin = std::optional<Clock::time_point>()](double share) mutable {
    if (!begin) begin = Clock::now();
    if (Clock::now() - *begin >= kSoon) {
      const auto line = share >= 1 ? "" : fmt::format("{}: {:3.0f} %{}", what, 100 * share, time_left(*begin, share));
      std::fprintf(stderr, "\r%s\033[K", line.c_str());
      std::fflush(stderr);
    }
    if (share >= 1) begin.reset();
  });
}

}  // namespace winnow::cli
