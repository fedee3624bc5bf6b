// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>

namespace winnow::cli {

/// The processes of one mpirun, which share a run. Without mpirun there is one process. Only this class knows MPI. A
/// process that dies or throws ends all others.
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

  /// Waits until all processes have called this. Throws Interrupted when the user stops the run meanwhile.
  void wait() const;
  /// For a run that the user has stopped: the first process calls `say` once the others have stopped, too, and these
  /// wait for it. mpirun kills all processes as soon as one has ended, and in any case after a second, so that nobody
  /// waits longer.
  void say_last(const std::function<void()>& say) const;
  /// Gives the first process the sums of all processes. The others' values stay as they are.
  void add_up(std::span<double> values) const;

 private:
  int index_ = 0;
  int count_ = 1;
  bool begun_ = false;
  int exceptions_ = 0;  ///< in flight at the beginning
};

}  // namespace winnow::cli
