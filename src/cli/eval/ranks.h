// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>

namespace winnow::cli {

/// The processes of one mpirun, which share a run. Without mpirun there is one process. Only this class uses MPI. If a
/// process dies or throws, all others end.
class Ranks {
 public:
  /// Throws UsageError if mpirun has started several processes and the program was built without MPI.
  Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  ~Ranks();

  int index() const { return index_; }
  int count() const { return count_; }
  bool is_first() const { return index_ == 0; }

  /// Waits until all processes have called this. Throws Interrupted if the user stops the run meanwhile.
  void wait() const;
  /// Ends a run that the user stopped: the first process calls `say` after the others have stopped, and they wait for
  /// it. The wait is short, since mpirun kills all processes as soon as one has ended, and in any case after a second.
  void say_last(const std::function<void()>& say) const;
  /// Adds up the values of all processes on the first one. The others' values stay unchanged.
  void add_up(std::span<double> values) const;

 private:
  int index_ = 0;
  int count_ = 1;
  bool begun_ = false;
  int exceptions_ = 0;  ///< in flight at construction
};

}  // namespace winnow::cli
