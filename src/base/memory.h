// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "winnow/counted_vector.h"

namespace winnow {

/// Counts the bytes allocated by buffers. Thread-safe; must outlive every Buffer that reports to it.
class MemoryAccount {
 public:
  /// A child also reports to its parent, so that one account can show a part (lanes) and another the whole.
  explicit MemoryAccount(MemoryAccount* parent = nullptr) : parent_(parent) {}
  MemoryAccount(const MemoryAccount&) = delete;
  MemoryAccount& operator=(const MemoryAccount&) = delete;

  void add(std::size_t bytes);
  void remove(std::size_t bytes);

  /// Bytes currently allocated.
  std::size_t held() const { return held_.load(std::memory_order_relaxed); }
  /// The largest held() since construction or the last reset_peak().
  std::size_t peak() const { return peak_.load(std::memory_order_relaxed); }
  void reset_peak() { peak_.store(held(), std::memory_order_relaxed); }

 private:
  MemoryAccount* parent_;
  std::atomic<std::size_t> held_{0};
  std::atomic<std::size_t> peak_{0};
};

/// Uninitialised memory, 64-byte aligned (a cache line, an AVX-512 vector), counted by an account. Move-only.
class Buffer {
 public:
  Buffer() = default;
  /// Throws MemoryError, which names `purpose`, if `bytes` cannot be allocated.
  Buffer(MemoryAccount& account, std::size_t bytes, const char* purpose);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  template <class T>
  std::span<T> as() {
    return {reinterpret_cast<T*>(data_), size_ / sizeof(T)};
  }
  template <class T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(data_), size_ / sizeof(T)};
  }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  MemoryAccount* account_ = nullptr;
};

/// Counts bytes allocated by others during its lifetime.
class Charge {
 public:
  Charge(MemoryAccount& account, std::size_t bytes) : account_(account), bytes_(bytes) { account_.add(bytes_); }
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;
  ~Charge() { account_.remove(bytes_); }

 private:
  MemoryAccount& account_;
  std::size_t bytes_;
};

/// During its lifetime, its account counts the CountedVectors that this thread makes: for functions without an account,
/// such as the parts of a method. Scopes may be nested; the innermost one counts.
class CountingScope {
 public:
  explicit CountingScope(MemoryAccount& account) : outer_(current_) { current_ = &account; }
  CountingScope(const CountingScope&) = delete;
  CountingScope& operator=(const CountingScope&) = delete;
  ~CountingScope() { current_ = outer_; }

  /// Null outside all scopes.
  static MemoryAccount* current() { return current_; }

 private:
  static inline thread_local MemoryAccount* current_ = nullptr;
  MemoryAccount* outer_;
};

/// Bytes that can still be allocated: the least of the limits of the machine and the process.
std::size_t available_memory();

}  // namespace winnow
