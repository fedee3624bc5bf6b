// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

namespace winnow::test {

inline std::string bytes_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Files of a folder by their path in it, with their bytes.
using Files = std::map<std::string, std::string>;

inline Files files_in(const std::string& folder) {
  Files out;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file())
      out.emplace(std::filesystem::relative(entry.path(), folder).string(), bytes_of_file(entry.path().string()));
  }
  return out;
}

/// An offset in a file, and the mask that its byte is XORed with.
struct Flip {
  std::string file;
  std::size_t at;
  unsigned char by;
};

inline std::string print(const Flip& flip) {
  return flip.file + ": byte " + std::to_string(flip.at) + " changed by " + std::to_string(flip.by);
}

/// A store in a folder, which can be made whole again.
class StoreToDamage {
 public:
  explicit StoreToDamage(std::string folder) : folder_(std::move(folder)), whole_(files_in(folder_)) {}

  const Files& whole() const { return whole_; }
  std::string path(const std::string& file) const { return folder_ + "/" + file; }

  /// One bit and all bits of some bytes of each file: the first 64, and `count` of the others.
  std::vector<Flip> flips(std::size_t count) const {
    constexpr std::size_t kDense = 64;
    std::vector<Flip> out;
    for (const auto& [file, bytes] : whole_) {
      const std::size_t stride = std::max<std::size_t>(1, bytes.size() / count);
      for (std::size_t at = 0; at < bytes.size(); at += at < kDense ? 1 : stride) {
        out.push_back({file, at, 0xFF});
        out.push_back({file, at, static_cast<unsigned char>(1U << at % 8)});
      }
    }
    return out;
  }

  /// Makes the store whole.
  void repair() const {
    std::filesystem::remove_all(folder_);
    for (const auto& [file, bytes] : whole_) {
      std::filesystem::create_directories(std::filesystem::path(path(file)).parent_path());
      write(file, bytes);
    }
    for (const char* const inner : {"values", "parts"}) std::filesystem::create_directories(path(inner));
  }
  /// Makes the store whole except for one byte.
  void damage(const Flip& flip) const {
    repair();
    std::string bytes = whole_.at(flip.file);
    bytes[flip.at] = static_cast<char>(bytes[flip.at] ^ flip.by);
    write(flip.file, bytes);
  }
  void write(const std::string& file, const std::string& bytes) const {
    std::ofstream(path(file), std::ios::binary | std::ios::trunc) << bytes;
  }

 private:
  std::string folder_;
  Files whole_;
};

}  // namespace winnow::test
