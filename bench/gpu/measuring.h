// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace winnow::device {

inline void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}
inline void check(const char* problem) {
  if (problem != nullptr) throw std::runtime_error(problem);
}

/// Device memory.
class Memory {
 public:
  explicit Memory(std::size_t bytes) : bytes_(bytes) { check(cudaMalloc(&address_, bytes)); }
  ~Memory() { cudaFree(address_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  template <class T>
  T* as() const {
    return static_cast<T*>(address_);
  }
  void fill(const std::vector<std::uint8_t>& from) const {
    for (std::size_t at = 0; at < bytes_; at += from.size()) {
      check(
          cudaMemcpy(as<std::uint8_t>() + at, from.data(), std::min(from.size(), bytes_ - at), cudaMemcpyHostToDevice));
    }
  }
  template <class T>
  void put(const std::vector<T>& values) const {
    check(cudaMemcpy(address_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  }
  /// Fills the memory with normal random numbers of `size` bytes, 2 for bf16 and 4 for f32; 16 MiB of them repeat.
  const Memory& randomized(std::size_t size) const {
    std::mt19937 random(1);
    std::normal_distribution<float> of;
    std::vector<std::uint8_t> bytes(std::min<std::size_t>(bytes_, std::size_t{16} << 20U) / 4 * 4);
    for (std::size_t i = 0; i + size <= bytes.size(); i += size) {
      const float x = of(random);
      const auto* const from = reinterpret_cast<const std::uint8_t*>(&x) + (4 - size);
      std::copy(from, from + size, &bytes[i]);
    }
    fill(bytes);
    return *this;
  }

 private:
  std::size_t bytes_;
  void* address_ = nullptr;
};

struct Work {
  double operations = 0;
  double bytes = 0;
};

class Clock {
 public:
  explicit Clock(std::string only) : only_(std::move(only)) {
    check(cudaEventCreate(&begin_));
    check(cudaEventCreate(&end_));
  }

  bool wants(const std::string& name) const { return name.rfind(only_, 0) == 0; }

  void measure(const std::string& name, const Work& work, const std::function<void()>& run) {
    if (!wants(name)) return;
    run();
    check(cudaDeviceSynchronize());
    std::vector<float> times;
    float total = 0;
    while (times.size() < 5 || (total < 150 && times.size() < 200)) {
      check(cudaEventRecord(begin_));
      run();
      check(cudaEventRecord(end_));
      check(cudaEventSynchronize(end_));
      float ms = 0;
      check(cudaEventElapsedTime(&ms, begin_, end_));
      times.push_back(ms);
      total += ms;
    }
    std::sort(times.begin(), times.end());
    const double seconds = times[times.size() / 2] / 1e3;
    std::printf(
        "{\"name\":\"%s\",\"us\":%.2f,\"least_us\":%.2f,\"most_us\":%.2f,\"runs\":%zu,\"tflops\":%.1f,\"gb_s\":%.1f}\n",
        name.c_str(), seconds * 1e6, times.front() * 1e3, times.back() * 1e3, times.size(),
        work.operations / seconds / 1e12, work.bytes / seconds / 1e9);
    std::fflush(stdout);
  }

 private:
  std::string only_;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

}  // namespace winnow::device
