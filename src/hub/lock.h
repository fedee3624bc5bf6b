// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

namespace winnow::hub {

/// The lock under which one process downloads a file: the one that the hub's own client takes, too.
class Lock {
 public:
  /// Makes the file where there is none. While another process holds the lock, calls `on_wait` ten times a second.
  /// Throws ModelError for a file that cannot be made, and what `on_wait` throws.
  Lock(const std::string& path, const std::function<void()>& on_wait);
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  ~Lock();

 private:
  int fd_;
};

}  // namespace winnow::hub
