// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/mapped_range.h"

namespace winnow::model {

/// A whole file mapped read-only.
class MappedFile {
 public:
  /// Throws ModelError for a file that is missing, unreadable or empty, and for a folder, pipe or device.
  explicit MappedFile(const std::string& path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::optional<MappedRange> range_;
};

}  // namespace winnow::model
