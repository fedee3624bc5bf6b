// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <stdexcept>

#include "memory.h"

namespace winnow::device::test {
namespace {

void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

}  // namespace

DeviceMemory::DeviceMemory(std::size_t bytes) : bytes_(bytes) {
  void* base = nullptr;
  check(cudaMalloc(&base, bytes));
  base_ = address_ = static_cast<std::byte*>(base);
}

DeviceMemory::~DeviceMemory() { cudaFree(base_); }

void DeviceMemory::upload(std::span<const std::byte> from) {
  check(cudaMemcpy(address_, from.data(), from.size(), cudaMemcpyHostToDevice));
}

void DeviceMemory::download(std::span<std::byte> to) const {
  check(cudaDeviceSynchronize());
  check(cudaMemcpy(to.data(), address_, to.size(), cudaMemcpyDeviceToHost));
}

void in_several_orders(const std::function<void()>& test) {
  for (int i = 0; i < 3; ++i) test();
}

}  // namespace winnow::device::test
