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

/// Takes bytes in order: a file, a hash, a piece of memory.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  /// Throws InputError when the bytes cannot be taken.
  virtual void write(std::span<const std::byte> bytes) = 0;
};

/// Writes numbers as they lie in memory.
template <class T>
requires std::is_arithmetic_v<T>
void put(ByteSink& to, std::span<const T> values) { to.write(std::as_bytes(values)); }
template <class T>
requires std::is_arithmetic_v<T>
void put(ByteSink& to, T value) { put(to, std::span<const T>(&value, 1)); }
/// A length as u32, then the bytes.
void put(ByteSink& to, std::string_view text);

/// Collects bytes in memory.
class MemorySink : public ByteSink {
 public:
  void write(std::span<const std::byte> bytes) override;
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

/// Bytes that can be read from any place. Reading changes nothing, so that threads may share one.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual std::size_t size() const = 0;
  /// What messages call it.
  virtual const std::string& name() const = 0;
  /// Fills `out` from byte `at` on. REQUIRES: at + out.size() <= size(). Throws InputError.
  virtual void read(std::size_t at, std::span<std::byte> out) const = 0;
};

/// Bytes in memory, which it does not own.
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

/// Reads a stretch of a source from front to back and never past its end. `what` names the thing that is read in
/// messages.
class ByteCursor {
 public:
  ByteCursor(const ByteSource& from, std::size_t begin, std::size_t end) : from_(&from), at_(begin), end_(end) {}

  /// All throw InputError when so many bytes are not there.
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
  /// A cursor over the next so many bytes, which are then after this one.
  ByteCursor part(std::size_t bytes, std::string_view what);
  /// What put() has written; nothing is allocated before it is known to be there.
  std::string text(std::string_view what);

  std::size_t left() const { return end_ - at_; }
  const std::string& source() const { return from_->name(); }
  /// Throws InputError when something is left.
  void finish(std::string_view what) const;
  /// An InputError about what is being read: its source's name, then `why`.
  [[noreturn]] void fail(const std::string& why) const;

 private:
  void need(std::size_t bytes, std::string_view what) const;

  const ByteSource* from_;
  std::size_t at_;
  std::size_t end_;
};

}  // namespace winnow
