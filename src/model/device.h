// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ggml-backend.h>
#include <ggml-cpp.h>
#include <ggml.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/memory.h"

namespace winnow::model {

/// A ggml backend other than the CPU's, with memory of its own: a model's weights lie there, and its network is
/// computed there. Thread-safe, so that several sessions can use it.
class Device {
 public:
  explicit Device(ggml_backend_ptr backend) : backend_(std::move(backend)) {}

  std::string name() const { return ggml_backend_name(backend_.get()); }
  /// The type of memory that graphs read and write.
  ggml_backend_buffer_type_t memory() const { return ggml_backend_get_default_buffer_type(backend_.get()); }
  /// Counts the bytes allocated there.
  MemoryAccount& account() { return account_; }
  /// Bytes that can still be allocated there.
  std::size_t available() const;

  bool supports(const ggml_tensor& node) const { return ggml_backend_supports_op(backend_.get(), &node); }
  /// Computes nodes [first, end) of a graph, which are allocated there. Throws Error if the backend fails.
  void compute(ggml_cgraph* graph, int first, int end);

 private:
  ggml_backend_ptr backend_;
  MemoryAccount account_;
  std::mutex computing_;  ///< ggml's backends are not thread-safe
};

/// Memory of a device, counted by its account. Move-only.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  /// Throws MemoryError, which names `purpose`.
  DeviceMemory(Device& device, std::size_t bytes, const char* purpose);
  /// Takes memory of the device that ggml has allocated.
  DeviceMemory(Device& device, ggml_backend_buffer_ptr buffer);

  ggml_backend_buffer_t buffer() const { return buffer_.get(); }

 private:
  ggml_backend_buffer_ptr buffer_;
  std::unique_ptr<Charge> charge_;
};

}  // namespace winnow::model
