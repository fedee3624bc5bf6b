// SPDX-License-Identifier: Apache-2.0
#include "network/states.h"

#include <ggml-backend.h>
#include <ggml-cpu.h>

#include <algorithm>
#include <cstring>

#include "base/as_size.h"

namespace winnow::network {

namespace {

/// Room for two tensors without data.
ggml_context_ptr small_context() { return ggml_context_ptr(ggml_init({2 * ggml_tensor_overhead(), nullptr, true})); }

}  // namespace

std::size_t States::bytes(const model::Hparams& hparams, std::size_t rows) {
  return rows * as_size(hparams.n_embd) * sizeof(float);
}

States::States(MemoryAccount& account, const model::Hparams& hparams, int rows, const char* purpose,
               device::Device* device)
    : width_(hparams.n_embd), rows_(rows) {
  const auto size = bytes(hparams, as_size(rows));
  if (device != nullptr) {
    device_ = device::DeviceMemory(*device, size, purpose);
    return;
  }
  host_ = Buffer(account, size, purpose);
  of_host_.reset(ggml_backend_cpu_buffer_from_ptr(host_.data(), host_.size()));
}

float* States::row(int i) const {
  auto* const buffer = is_on_device() ? device_.buffer() : of_host_.get();
  return static_cast<float*>(ggml_backend_buffer_get_base(buffer)) + static_cast<std::ptrdiff_t>(i) * width_;
}

ggml_tensor* States::tensor(ggml_context* context, int first, int count) const {
  ggml_tensor* const out = ggml_new_tensor_2d(context, GGML_TYPE_F32, width_, count);
  ggml_backend_tensor_alloc(is_on_device() ? device_.buffer() : of_host_.get(), out, row(first));
  return out;
}

void States::copy(int to, const States& of, int from) {
  if (&of == this && to == from) return;
  if (!is_on_device()) {
    std::memcpy(row(to), of.row(from), as_size(width_) * sizeof(float));
    return;
  }
  const auto context = small_context();
  ggml_backend_tensor_copy(of.tensor(context.get(), from, 1), tensor(context.get(), to, 1));
}

void States::read(int first, std::span<float> to) const {
  if (!is_on_device()) {
    std::copy_n(row(first), to.size(), to.begin());
    return;
  }
  const auto context = small_context();
  const int count = static_cast<int>(to.size()) / width_;
  ggml_backend_tensor_get(tensor(context.get(), first, count), to.data(), 0, to.size_bytes());
}

void States::write(int first, std::span<const float> from) {
  const auto context = small_context();
  const int count = static_cast<int>(from.size()) / width_;
  ggml_backend_tensor_set(tensor(context.get(), first, count), from.data(), 0, from.size_bytes());
}

}  // namespace winnow::network
