// SPDX-License-Identifier: Apache-2.0
#include "cli/eval/progress.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <cstdio>

#include "base/clock.h"
#include "base/log.h"
#include "base/printable.h"
#include "cli/progress.h"

namespace winnow::cli {

eval::Progress eval_progress() {
  eval::Progress out;
  out.on_failure = [](const std::string& sentence) { log().error("{}", sentence); };
  if (isatty(STDERR_FILENO) == 0) return out;
  out.on_group = [begin = Clock::now(), first = -1](int done, int all, const std::string& what) mutable {
    if (first < 0) first = done;
    const auto left = time_left(begin, static_cast<double>(done - first) / (all - first));
    std::fputs(fmt::format("\r\033[K{} of {}{}: {}", done, all, left, printable(what)).c_str(), stderr);
    std::fflush(stderr);
  };
  return out;
}

void end_eval_progress() {
  if (isatty(STDERR_FILENO) != 0) std::fputs("\r\033[K", stderr);
}

}  // namespace winnow::cli
