// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "base/clock.h"
#include "hub/fetch.h"
#include "winnow/session.h"

namespace winnow::cli {

/// ", 12 s left" for work with the share `done` since `begin`; "" if nothing is done yet.
std::string time_left(Clock::time_point begin, double done);

/// Shows the progress and the remaining time of reading a prompt, in one line on stderr that is overwritten. Only on a
/// terminal.
void show_progress(Session& session, const std::string& what = "reading the prompt");

/// The same for downloads; the line is removed at their end. Not shown with --quiet.
class DownloadLine {
 public:
  DownloadLine() = default;
  DownloadLine(const DownloadLine&) = delete;
  DownloadLine& operator=(const DownloadLine&) = delete;
  ~DownloadLine();

  void show(const hub::Progress& progress);

 private:
  std::string file_;         ///< being downloaded; empty: none
  Clock::time_point begin_;  ///< of this download
  std::size_t bytes_ = 0;    ///< present at the beginning
};

}  // namespace winnow::cli
