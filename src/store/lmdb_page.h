// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/byte_stream.h"
#include "store/lmdb_layout.h"

/// Bounds-checked LMDB pages. All functions throw InputError for invalid ones.
namespace winnow::store::lmdb {

/// Throws InputError with the reason why the file is damaged.
[[noreturn]] void fail(const ByteSource& file, const std::string& why);

template <class T>
T read_at(const ByteSource& file, std::uint64_t at) {
  T out;
  file.read(at, std::as_writable_bytes(std::span(&out, 1)));
  return out;
}

/// Reads a meta page. Checks that its page size is `page_size`, unless that is 0.
Meta read_meta(const ByteSource& file, std::uint64_t page, std::size_t page_size);

/// A page of a tree. Checks that its nodes lie within it without gaps.
class Page {
 public:
  Page(const ByteSource& file, std::uint64_t number, std::size_t size, std::uint16_t flags);

  std::size_t count() const { return (header_.lower - sizeof(header_)) / sizeof(std::uint16_t); }
  NodeHeader node(std::size_t i) const { return at<NodeHeader>(offsets_[i]); }
  std::string key(std::size_t i) const;
  /// Data of a leaf's node; for large data, the number of its first overflow page.
  std::span<const std::byte> data(std::size_t i) const;
  [[noreturn]] void fail(const std::string& why) const;

 private:
  template <class T>
  T at(std::size_t place) const {
    T out;
    std::memcpy(&out, bytes_.data() + place, sizeof(out));
    return out;
  }
  std::size_t data_size(std::size_t i) const;
  void check_places() const;

  const ByteSource& file_;
  std::uint64_t number_;
  std::vector<std::byte> bytes_;
  PageHeader header_{};
  std::vector<std::uint16_t> offsets_;
};

}  // namespace winnow::store::lmdb
