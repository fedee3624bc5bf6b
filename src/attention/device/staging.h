// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "device/device.h"

namespace winnow::attention::device {

/// Arrays that are copied to a device together, since each copy waits for the device. Usage: add() all arrays,
/// reserve(), complete those that contain addresses, upload().
class Staging {
 public:
  explicit Staging(winnow::device::Device& device) : device_(device) {}

  /// Discards all arrays.
  void clear() { bytes_.clear(); }
  /// Adds room for an array of `bytes`, and returns its offset, a multiple of 256.
  std::size_t add(std::size_t bytes);
  template <class T>
  std::size_t add(std::span<const T> from) {
    const std::size_t at = add(from.size_bytes());
    if (!from.empty()) std::memcpy(bytes_.data() + at, from.data(), from.size_bytes());
    return at;
  }
  /// An array in the host's memory, up to the next add().
  template <class T>
  T* host(std::size_t offset) {
    return reinterpret_cast<T*>(bytes_.data() + offset);
  }

  /// Allocates the device's memory. Throws MemoryError.
  void reserve();
  /// The device's address of an array. REQUIRES: reserve().
  template <class T>
  T* at(std::size_t offset) const {
    return reinterpret_cast<T*>(memory_.at(offset));
  }
  void upload() const { memory_.write(0, bytes_); }

 private:
  winnow::device::Device& device_;
  std::vector<std::byte> bytes_;
  winnow::device::DeviceMemory memory_;
};

}  // namespace winnow::attention::device
