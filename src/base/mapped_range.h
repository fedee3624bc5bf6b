// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace winnow {

/// Registers a range of memory as a map of a file during its lifetime. If a mapped file is truncated, the next read
/// beyond its end causes SIGBUS; a handler of that signal can then name the file.
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
