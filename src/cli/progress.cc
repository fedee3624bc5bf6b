// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <optional>

#include "base/format.h"
#include "base/log.h"
#include "base/printable.h"
#include "cli/wording.h"

namespace winnow::cli {

namespace {

/// Shorter work is not shown.
constexpr std::chrono::milliseconds kSoon{500};

double share(std::size_t part, std::size_t whole) { return static_cast<double>(part) / static_cast<double>(whole); }

void show_line(const std::string& line) {
  std::fprintf(stderr, "\r%s\033[K", line.c_str());
  std::fflush(stderr);
}

/// The line without the remaining time.
std::string line_of(const hub::Progress& p) {
  const auto file = brief(p.file);
  if (p.total == 0) return fmt::format("another process is downloading {}: {} so far", file, format_bytes(p.bytes));
  if (p.bytes == p.total) return fmt::format("checking {}", file);
  return fmt::format("downloading {}: {:3.0f} % of {}", file, share(p.bytes, p.total) * 100, format_bytes(p.total));
}

}  // namespace

std::string time_left(Clock::time_point begin, double done) {
  return done > 0 ? fmt::format(", {} left", duration(ms_since(begin) / 1000 * (1 - done) / done)) : "";
}

DownloadLine::~DownloadLine() {
  if (!file_.empty()) show_line("");
}

void DownloadLine::show(const hub::Progress& p) {
  if (isatty(STDERR_FILENO) == 0 || !log().should_log(spdlog::level::info)) return;
  if (file_ != p.file) {
    file_ = p.file;
    begin_ = Clock::now();
    bytes_ = p.bytes;
  }
  const bool is_downloading = p.bytes > bytes_ && p.bytes < p.total;
  show_line(line_of(p) + (is_downloading ? time_left(begin_, share(p.bytes - bytes_, p.total - bytes_)) : ""));
}

void show_progress(Session& session, const std::string& what) {
  if (isatty(STDERR_FILENO) == 0) return;
  session.on_progress([what, begin = std::optional<Clock::time_point>()](double share) mutable {
    if (!begin) begin = Clock::now();
    if (Clock::now() - *begin >= kSoon) {
      const auto line = share >= 1 ? "" : fmt::format("{}: {:3.0f} %{}", what, 100 * share, time_left(*begin, share));
      show_line(line);
    }
    if (share >= 1) begin.reset();
  });
}

}  // namespace winnow::cli
