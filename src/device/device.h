// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ggml-backend.h>
#include <ggml-cpp.h>
#include <ggml.h>

#include <atomic>
#include <cstddef>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include "base/memory.h"
#include "device/kernels.h"

namespace winnow::device {

/// Bytes rounded up, so that what follows is aligned for every kernel.
std::size_t aligned(std::size_t bytes);

/// Where a device's work is queued.
struct Queue {
  const Kernels* kernels = nullptr;  ///< winnow's own for this kind of device; null: there are none
  void* stream = nullptr;            ///< for them
  /// Queues nodes [first, end) of a graph in the same stream. Null: graphs run in a stream of their own.
  ggml_status (*queue_part)(ggml_backend_t backend, ggml_cgraph* graph, int first, int end) = nullptr;
};

/// Nodes [first, end) of a graph as a graph of their own. ggml's public functions make it without counts of uses, so a
/// backend fuses none of its nodes.
class GraphPart {
 public:
  GraphPart(ggml_cgraph* graph, int first, int end);
  ggml_cgraph* graph() const { return part_; }

 private:
  ggml_context_ptr context_;
  ggml_cgraph* part_;
};

/// A ggml backend other than the CPU's, with memory of its own: a model's weights lie there, and its network is
/// computed there. Thread-safe, so that several sessions can use it.
class Device {
 public:
  explicit Device(ggml_backend_ptr backend, const Queue& queue = {}) : backend_(std::move(backend)), queue_(queue) {}

  ggml_backend_dev_t of_ggml() const { return ggml_backend_get_device(backend_.get()); }
  std::string name() const { return ggml_backend_name(backend_.get()); }
  bool has_kernels() const { return queue_.kernels != nullptr; }
  /// True if graphs and kernels follow each other in one stream. Otherwise the host waits for kernels by reading their
  /// results, before the next part of a graph.
  bool is_in_order() const { return queue_.queue_part != nullptr; }
  /// The type of memory that graphs read and write.
  ggml_backend_buffer_type_t memory() const { return ggml_backend_get_default_buffer_type(backend_.get()); }
  /// Counts the bytes allocated there.
  MemoryAccount& account() { return account_; }
  /// Bytes that can still be allocated there.
  std::size_t available() const { return room().free; }
  /// Throws MemoryError, which names `purpose`, if so many bytes are not available.
  void check(std::size_t bytes, const char* purpose) const;
  /// Begins a prompt that needs so many bytes and a margin: like check(), and from now on check_for_copy() leaves as
  /// many free.
  void check_for_prompt(std::size_t bytes);
  /// The same for a copy of data in the host's memory, which must leave room for a prompt.
  void check_for_copy(std::size_t bytes, const char* purpose) const { check(bytes + most_of_prompt_, purpose); }
  /// Bytes for what is not counted before it is needed: work space, and pools of ggml's that cannot fail.
  std::size_t margin() const { return room().all / 64; }

  bool supports(const ggml_tensor& node) const { return ggml_backend_supports_op(backend_.get(), &node); }
  /// Computes nodes [first, end) of a graph, which are allocated there. If the device is in order, returns when they
  /// are queued. Throws Error if the backend fails.
  void compute(ggml_cgraph* graph, int first, int end);
  /// Queues one of winnow's kernels. Returns null, or the reason why it was not queued.
  template <class Task>
  const char* queue(const char* (*Kernels::*kernel)(const Task&, void*), const Task& task) {
    const std::scoped_lock lock(queueing_);
    return (queue_.kernels->*kernel)(task, queue_.stream);
  }
  /// Waits for all that has been queued in order.
  void synchronize();

 private:
  /// Bytes of its memory; without limits if it is not known.
  struct Room {
    std::size_t free = std::numeric_limits<std::size_t>::max();
    std::size_t all = 0;
  };
  Room room() const;

  ggml_backend_ptr backend_;
  Queue queue_;
  MemoryAccount account_;
  std::atomic<std::size_t> most_of_prompt_ = 0;  ///< bytes
  std::mutex queueing_;  ///< ggml's backends are not thread-safe, and record what is queued in their stream
};

/// Memory of a device, counted by its account. Move-only.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  /// Throws MemoryError, which names `purpose`.
  DeviceMemory(Device& device, std::size_t bytes, const char* purpose);
  /// Takes memory of the device that ggml has allocated.
  DeviceMemory(Device& device, ggml_backend_buffer_ptr buffer);

  /// Replaces it by larger memory with some slack and undefined contents, if it has fewer bytes. Throws MemoryError.
  void grow(Device& device, std::size_t bytes, const char* purpose);

  ggml_backend_buffer_t buffer() const { return buffer_.get(); }
  std::size_t size() const { return buffer_ == nullptr ? 0 : ggml_backend_buffer_get_size(buffer_.get()); }
  /// The address of a byte, for kernels.
  std::byte* at(std::size_t offset) const {
    return static_cast<std::byte*>(ggml_backend_buffer_get_base(buffer_.get())) + offset;
  }
  /// Copy bytes from the host's memory, or to it. The host waits for the copy, which follows all that was queued
  /// before.
  void write(std::size_t offset, std::span<const std::byte> from) const;
  void read(std::size_t offset, std::span<std::byte> to) const;
  void fill_zeros(std::size_t offset, std::size_t bytes) const;

 private:
  Device* device_ = nullptr;
  ggml_backend_buffer_ptr buffer_;
  std::unique_ptr<Charge> charge_;
};

}  // namespace winnow::device
