// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace winnow::cli {

/// Lines of the user's files that cannot be used. The first are named on stderr, so that a file of another kind does
/// not bring an error for each of its lines.
class BadLines {
 public:
  /// Counts a line. `sentence`: file, line and why.
  void add(const std::string& sentence);
  /// Counts a line that another process names.
  void add() { ++count_; }
  int count() const { return count_; }
  /// " (the first 5 are named above)"; empty where all are.
  std::string named() const;

 private:
  int count_ = 0;
};

}  // namespace winnow::cli
