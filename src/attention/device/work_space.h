// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "device/device.h"

namespace winnow::attention::device {

/// Memory of a device for the arrays of a chunk or step. It only grows. Usage: add() all arrays, reserve(), then use
/// them.
class WorkSpace {
 public:
  explicit WorkSpace(winnow::device::Device& device) : device_(device) {}

  /// Discards all arrays.
  void clear() { bytes_ = 0; }
  /// Adds an array of `bytes`, and returns its offset, a multiple of 256.
  std::size_t add(std::size_t bytes);
  /// Allocates memory for all arrays. Throws MemoryError.
  void reserve();

  template <class T>
  T* at(std::size_t offset) const {
    return reinterpret_cast<T*>(memory_.at(offset));
  }
  template <class T, std::size_t N>
  void write(std::size_t offset, std::span<T, N> from) const {
    memory_.write(offset, std::as_bytes(from));
  }
  template <class T, std::size_t N>
  void read(std::size_t offset, std::span<T, N> to) const {
    memory_.read(offset, std::as_writable_bytes(to));
  }
  void fill_zeros(std::size_t offset, std::size_t bytes) const { memory_.fill_zeros(offset, bytes); }

 private:
  winnow::device::Device& device_;
  winnow::device::DeviceMemory memory_;
  std::size_t bytes_ = 0;
};

}  // namespace winnow::attention::device
