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

/// Pages of an LMDB file, read with bounds. All throw InputError for what cannot be one.
namespace winnow::store::lmdb {

/// Throws the InputError that says why the file is damaged.
[[noreturn]] void fail(const ByteSource& file, const std::string& why);

template <class T>
T read_at(const ByteSource& file, std::uint64_t at) {
  T out;
  file.read(at, std::as_writable_bytes(std::span(&out, 1)));
  return out;
}

/// A meta page. Checks that pages have `page_size` bytes, unless that is 0.
Meta read_meta(const ByteSource& file, std::uint64_t page, std::size_t page_size);

/// A page of a tree, whose nodes lie within it and leave no gaps.
class Page {
 public:
  Page(const ByteSource& file, std::uint64_t number, std::size_t size, std::uint16_t flags);

  std::size_t count() const { return (header_.lower - sizeof(header_)) / sizeof(std::uint16_t); }
  NodeHeader node(std::size_t i) const { return at<NodeHeader>(offsets_[i]); }
  std::string key(std::size_t i) const;
  /// Of a leaf's node: its data, or where it is.
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
