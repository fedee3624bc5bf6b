// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace winnow {

static_assert(std::endian::native == std::endian::little,
              "files are little-endian and numbers are copied as they lie in memory");

/// Accepts a sequence of bytes: a file, a hash, memory.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  /// Throws InputError if the bytes cannot be written.
  virtual void write(std::span<const std::byte> bytes) = 0;
};

/// Writes numbers in their memory representation.
template <class T>
requires std::is_arithmetic_v<T>
void put(ByteSink& to, std::span<const T> values) { to.write(std::as_bytes(values)); }
template <class T>
requires std::is_arithmetic_v<T>
void put(ByteSink& to, T value) { put(to, std::span<const T>(&value, 1)); }
/// Writes the length as u32, then the bytes.
void put(ByteSink& to, std::string_view text);

/// Collects bytes in memory.
class MemorySink : public ByteSink {
 public:
  void write(std::span<const std::byte> bytes) override;
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

/// Bytes with random access. Reading changes nothing, so threads may share a source.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual std::size_t size() const = 0;
  /// Name of the source in messages.
  virtual const std::string& name() const = 0;
  /// Fills `out` from offset `at`. REQUIRES: at + out.size() <= size(). Throws InputError.
  virtual void read(std::size_t at, std::span<std::byte> out) const = 0;
};

/// A view of bytes in memory.
class MemorySource : public ByteSource {
 public:
  MemorySource(std::span<const std::byte> bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {}

  std::size_t size() const override { return bytes_.size(); }
  const std::string& name() const override { return name_; }
  void read(std::size_t at, std::span<std::byte> out) const override;

 private:
  std::span<const std::byte> bytes_;
  std::string name_;
};

/// Reads a range of a source sequentially, and never past its end. `what` is the thing being read, for messages.
class ByteCursor {
 public:
  ByteCursor(const ByteSource& from, std::size_t begin, std::size_t end) : from_(&from), at_(begin), end_(end) {}

  /// All functions throw InputError if fewer bytes are left.
  void read(std::span<std::byte> out, std::string_view what);
  template <class T>
  requires std::is_arithmetic_v<T>
  void read(std::span<T> out, std::string_view what) { read(std::as_writable_bytes(out), what); }
  template <class T>
  T take(std::string_view what) {
    T value;
    read(std::span<T>(&value, 1), what);
    return value;
  }
  /// Returns a cursor over the next bytes, and skips them.
  ByteCursor part(std::size_t bytes, std::string_view what);
  /// Reads a text written by put(); checks its length before allocating.
  std::string text(std::string_view what);

  std::size_t left() const { return end_ - at_; }
  const std::string& source() const { return from_->name(); }
  /// Throws InputError if any bytes are left.
  void finish(std::string_view what) const;
  /// Throws InputError with the source's name and `why`.
  [[noreturn]] void fail(const std::string& why) const;

 private:
  void need(std::size_t bytes, std::string_view what) const;

  const ByteSource* from_;
  std::size_t at_;
  std::size_t end_;
};

}  // namespace winnow
