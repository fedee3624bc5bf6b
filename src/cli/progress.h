// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "base/clock.h"
#include "hub/fetch.h"
#include "winnow/session.h"

namespace winnow::cli {

/// ", 12 s left" for work of which a share is done since it began; empty: nothing is done yet.
std::string time_left(Clock::time_point begin, double done);

/// Shows how far a prompt has been read and how long the rest will take: one line on stderr that is written over, on a
/// terminal alone.
void show_progress(Session& session, const std::string& what = "reading the prompt");

/// Such a line for downloads, which goes when they have ended. There is none with --quiet.
class DownloadLine {
 public:
  DownloadLine() = default;
  DownloadLine(const DownloadLine&) = delete;
  DownloadLine& operator=(const DownloadLine&) = delete;
  ~DownloadLine();

  void show(const hub::Progress& progress);

 private:
  std::string file_;         ///< whose download is shown; empty: none
  Clock::time_point begin_;  ///< of this download, next
  std::size_t bytes_ = 0;    ///< that were there when it began
};

}  // namespace winnow::cli
