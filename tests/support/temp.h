// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

namespace winnow::test {

/// A temporary folder, removed by the destructor.
class TempFolder {
 public:
  explicit TempFolder(const std::filesystem::path& above = std::filesystem::temp_directory_path()) {
    std::string name = (above / "winnow-test-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// A folder whose files are in memory, if the machine has one: for tests that sync files thousands of times.
inline std::filesystem::path memory_folder() {
  const std::filesystem::path shared = "/dev/shm";
  std::error_code none;
  return std::filesystem::is_directory(shared, none) ? shared : std::filesystem::temp_directory_path();
}

/// The path of the real model, if the environment names one.
inline std::optional<std::string> real_model() {
  const char* const path = std::getenv("WINNOW_TEST_MODEL");
  if (path == nullptr || *path == '\0') return std::nullopt;
  return path;
}

}  // namespace winnow::test
