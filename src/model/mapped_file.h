#pragma once

#include <cstddef>
#include <string>

namespace winnow::model {

/// A whole file mapped read-only. Move-only.
class MappedFile {
 public:
  /// Throws ModelError: missing, a folder, unreadable, empty.
  explicit MappedFile(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace winnow::model
