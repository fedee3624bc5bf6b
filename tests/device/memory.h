// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <functional>
#include <span>
#include <vector>

#include "device/kernels.h"

namespace winnow::device::test {

/// Device memory. In the emulator an inaccessible page follows its last byte.
class DeviceMemory {
 public:
  explicit DeviceMemory(std::size_t bytes);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  std::byte* address() const { return address_; }
  void upload(std::span<const std::byte> from);
  /// Waits for all queued work first.
  void download(std::span<std::byte> to) const;

 private:
  std::size_t bytes_;
  std::byte* base_;
  std::byte* address_;
};

/// Values in device memory. Unwritten values are NaN, or -1.
template <class T>
class Array {
 public:
  explicit Array(const std::vector<T>& values) : count_(values.size()), memory_(count_ * sizeof(T)) {
    memory_.upload(std::as_bytes(std::span(values)));
  }
  explicit Array(std::size_t count) : count_(count), memory_(count * sizeof(T)) {
    memory_.upload(std::vector<std::byte>(count * sizeof(T), std::byte{0xff}));
  }

  T* address() const { return reinterpret_cast<T*>(memory_.address()); }
  std::vector<T> read() const {
    std::vector<T> out(count_);
    memory_.download(std::as_writable_bytes(std::span(out)));
    return out;
  }

 private:
  std::size_t count_;
  DeviceMemory memory_;
};

/// Calls `test` with several orders of warps and copies. (On a GPU the hardware chooses the order.)
void in_several_orders(const std::function<void()>& test);

/// Expects the same bits in every order.
class SameBits {
 public:
  void expect(const std::vector<float>& values) {
    if (first_.empty()) first_ = values;
    EXPECT_EQ(std::memcmp(first_.data(), values.data(), values.size() * sizeof(float)), 0);
  }

 private:
  std::vector<float> first_;
};

}  // namespace winnow::device::test
