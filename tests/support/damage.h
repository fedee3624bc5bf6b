// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace winnow::test {

inline std::string bytes_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// An offset in a file, and the mask that its byte is XORed with.
struct Flip {
  std::size_t at;
  unsigned char by;
};

/// A store's folder with one LMDB file of pages of 4 KiB.
class StoreToDamage {
 public:
  explicit StoreToDamage(const std::string& folder) : folder_(folder), whole_(bytes_of_file(path())) {}

  const std::string& folder() const { return folder_; }
  const std::string& whole() const { return whole_; }

  /// Offsets in all pages that belong to a tree or describe the pages after them: their first 64 bytes, and one in
  /// `stride` of the others.
  std::vector<std::size_t> places(std::size_t stride) const {
    std::vector<std::size_t> out;
    for (std::size_t page = 0; page * kPage < whole_.size(); page += run_at(page)) {
      const std::size_t end = flags_at(page) == kOverflow ? kHeader : kPage;
      for (std::size_t i = 0; i < end; i += i < kDense ? 1 : stride) out.push_back(page * kPage + i);
    }
    return out;
  }
  /// For each of these offsets, one bit flipped and all bits flipped.
  std::vector<Flip> flips(std::size_t stride) const {
    std::vector<Flip> out;
    for (const auto at : places(stride)) {
      out.push_back({at, 0xFF});
      out.push_back({at, static_cast<unsigned char>(1U << (at + at / kPage) % 8)});
    }
    return out;
  }

  /// Writes the store's file again, with these bytes changed.
  void damage(const std::vector<Flip>& flips) const {
    std::string bytes = whole_;
    for (const auto& flip : flips) bytes[flip.at] = static_cast<char>(bytes[flip.at] ^ flip.by);
    std::filesystem::remove(folder_ + "/lock.mdb");
    std::ofstream(path(), std::ios::binary | std::ios::trunc) << bytes;
  }

 private:
  static constexpr std::size_t kPage = 4096;
  static constexpr std::size_t kHeader = 16;
  static constexpr std::size_t kDense = 64;
  static constexpr unsigned kOverflow = 4;

  std::string path() const { return folder_ + "/data.mdb"; }
  template <class T>
  T at(std::size_t place) const {
    T out;
    std::memcpy(&out, whole_.data() + place, sizeof(out));
    return out;
  }
  unsigned flags_at(std::size_t page) const { return at<std::uint16_t>(page * kPage + 10); }
  std::size_t run_at(std::size_t page) const {
    return flags_at(page) == kOverflow ? at<std::uint32_t>(page * kPage + 12) : 1;
  }

  std::string folder_;
  std::string whole_;
};

inline std::string print(const Flip& flip) {
  return "byte " + std::to_string(flip.at) + " changed by " + std::to_string(flip.by);
}

}  // namespace winnow::test
