// SPDX-License-Identifier: Apache-2.0
#include "device/device.h"

#include <spdlog/fmt/fmt.h>

#include <utility>

#include "base/format.h"
#include "winnow/error.h"

namespace winnow::device {

std::size_t aligned(std::size_t bytes) {
  constexpr std::size_t kLine = 256;
  return (bytes + kLine - 1) / kLine * kLine;
}

Device::Room Device::room() const {
  auto* const device = of_ggml();
  Room out;
  if (device != nullptr) ggml_backend_dev_memory(device, &out.free, &out.all);
  return out;
}

void Device::check(std::size_t bytes, const char* purpose) const {
  if (bytes <= available()) return;
  throw MemoryError(fmt::format("{} need {} of {}, but {} are available", purpose, format_bytes(bytes), name(),
                                format_bytes(available())),
                    bytes);
}

void Device::check_for_prompt(std::size_t bytes) {
  bytes += margin();
  check(bytes, "a prompt's hidden states, keys and values");
  for (auto most = most_of_prompt_.load(); most < bytes && !most_of_prompt_.compare_exchange_weak(most, bytes);)
    continue;
}

GraphPart::GraphPart(ggml_cgraph* graph, int first, int end) {
  const auto nodes = static_cast<std::size_t>(end - first);
  context_.reset(ggml_init({ggml_graph_overhead_custom(nodes, false), nullptr, true}));
  part_ = ggml_new_graph_custom(context_.get(), nodes, false);
  for (int i = first; i < end; ++i) ggml_graph_add_node(part_, ggml_graph_node(graph, i));
}

void Device::compute(ggml_cgraph* graph, int first, int end) {
  const std::scoped_lock lock(queueing_);
  const auto status = is_in_order() ? queue_.queue_part(backend_.get(), graph, first, end)
                                    : ggml_backend_graph_compute(backend_.get(), GraphPart(graph, first, end).graph());
  if (status == GGML_STATUS_SUCCESS) return;
  throw Error(fmt::format("{} could not compute a graph (status {})", name(), static_cast<int>(status)));
}

void Device::synchronize() {
  if (!is_in_order()) return;
  const std::scoped_lock lock(queueing_);
  ggml_backend_synchronize(backend_.get());
}

namespace {

ggml_backend_buffer_ptr allocate(const Device& device, std::size_t bytes, const char* purpose) {
  ggml_backend_buffer_ptr out(ggml_backend_buft_alloc_buffer(device.memory(), bytes));
  if (out == nullptr) {
    throw MemoryError(fmt::format("cannot allocate {} of {} for {} ({} available)", format_bytes(bytes), device.name(),
                                  purpose, format_bytes(device.available())),
                      bytes);
  }
  return out;
}

/// Bytes of a buffer as the tensor that ggml's functions take.
ggml_tensor tensor_at(const DeviceMemory& memory, std::size_t offset, std::size_t bytes) {
  ggml_tensor out{};
  out.type = GGML_TYPE_I8;
  out.ne[0] = static_cast<std::int64_t>(bytes);
  out.ne[1] = out.ne[2] = out.ne[3] = 1;
  out.nb[0] = 1;
  out.nb[1] = out.nb[2] = out.nb[3] = bytes;
  out.buffer = memory.buffer();
  out.data = memory.at(offset);
  return out;
}

}  // namespace

void DeviceMemory::write(std::size_t offset, std::span<const std::byte> from) const {
  device_->synchronize();
  auto tensor = tensor_at(*this, offset, from.size());
  ggml_backend_tensor_set(&tensor, from.data(), 0, from.size());
}

void DeviceMemory::read(std::size_t offset, std::span<std::byte> to) const {
  device_->synchronize();
  const auto tensor = tensor_at(*this, offset, to.size());
  ggml_backend_tensor_get(&tensor, to.data(), 0, to.size());
}

void DeviceMemory::fill_zeros(std::size_t offset, std::size_t bytes) const {
  device_->synchronize();
  auto tensor = tensor_at(*this, offset, bytes);
  ggml_backend_tensor_memset(&tensor, 0, 0, bytes);
}

void DeviceMemory::grow(Device& device, std::size_t bytes, const char* purpose) {
  if (size() >= bytes) return;
  *this = {};  // frees the old one first
  *this = DeviceMemory(device, bytes + bytes / 4, purpose);
}

DeviceMemory::DeviceMemory(Device& device, std::size_t bytes, const char* purpose)
    : DeviceMemory(device, allocate(device, bytes, purpose)) {}

DeviceMemory::DeviceMemory(Device& device, ggml_backend_buffer_ptr buffer)
    : device_(&device),
      buffer_(std::move(buffer)),
      charge_(std::make_unique<Charge>(device.account(), ggml_backend_buffer_get_size(buffer_.get()))) {}

}  // namespace winnow::device
