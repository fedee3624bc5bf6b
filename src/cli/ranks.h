// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace winnow::cli {

/// The processes of one mpirun, which share a run: the only place that knows MPI. One process without mpirun. The last
/// thing that a process does with the others is to end well; one that dies or throws ends them all.
class Ranks {
 public:
  /// Throws UsageError when mpirun has started several and the program was built without MPI.
  Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  ~Ranks();

  int index() const { return index_; }
  int count() const { return count_; }
  bool is_first() const { return index_ == 0; }

  /// Until all have come here.
  void wait() const;
  /// Gives the first one the sums of all; the others' values are as they were.
  void add_up(std::span<double> values) const;

 private:
  int index_ = 0;
  int count_ = 1;
  bool begun_ = false;
  int exceptions_ = 0;  ///< in flight at the beginning
};

}  // namespace winnow::cli
