// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace winnow::cli {

/// Unusable lines of the user's files. Reports only the first ones on stderr, so that a file of the wrong kind does not
/// cause an error for each line.
class BadLines {
 public:
  /// Counts a line. `sentence` has the file, the line and the reason.
  void add(const std::string& sentence);
  /// Counts a line that another process reports.
  void add() { ++count_; }
  int count() const { return count_; }
  /// " (the first 5 are named above)", or "" if all are.
  std::string named() const;

 private:
  int count_ = 0;
};

}  // namespace winnow::cli
