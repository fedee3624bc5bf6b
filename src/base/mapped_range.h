// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace winnow {

/// Says of which file a stretch of memory is a map, while it lives. A file that is cut while it is mapped ends the
/// process with SIGBUS at the next read of what is gone; whoever handles that signal can then say which file it was.
class MappedRange {
 public:
  /// Records nothing beyond 64 ranges.
  MappedRange(const void* begin, std::size_t size, std::string name);
  MappedRange(const MappedRange&) = delete;
  MappedRange& operator=(const MappedRange&) = delete;
  ~MappedRange();

 private:
  std::string name_;
  int slot_ = -1;
};

/// Name of the file mapped at an address; null: unknown. Async-signal-safe.
const char* mapped_at(const void* address) noexcept;

}  // namespace winnow
