// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

namespace winnow::hub {

/// Lock for downloading a file, shared with the hub's own client.
class Lock {
 public:
  /// Creates the file if necessary. While another process holds the lock, calls `on_wait` ten times a second. Throws
  /// ModelError if the file cannot be created, and what `on_wait` throws.
  Lock(const std::string& path, const std::function<void()>& on_wait);
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  ~Lock();

 private:
  int fd_;
};

}  // namespace winnow::hub
