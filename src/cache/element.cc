// SPDX-License-Identifier: Apache-2.0
#include "cache/element.h"

#include <ggml-cpu.h>
#include <ggml.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "base/as_size.h"

namespace winnow::cache {

namespace {

ggml_type ggml_type_of(ElementType type) {
  constexpr std::array kTypes = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0};
  return kTypes.at(static_cast<std::size_t>(type));
}

/// Number of values in a stored row: whole blocks.
std::size_t padded(ElementType type, int dim) {
  const auto block = as_size(ggml_blck_size(ggml_type_of(type)));
  return (as_size(dim) + block - 1) / block * block;
}

/// The CPU backend's vectorised conversions round like ggml's plain ones; on some machines they need a table.
void prepare_conversions() {
  static const bool kReady = [] {
    ggml_cpu_init();
    return true;
  }();
  static_cast<void>(kReady);
}

void encode(ElementType type, const float* from, std::byte* out, std::int64_t n) {
  switch (type) {
    case ElementType::f16:
      prepare_conversions();
      return ggml_cpu_fp32_to_fp16(from, reinterpret_cast<ggml_fp16_t*>(out), n);
    case ElementType::bf16:
      return ggml_cpu_fp32_to_bf16(from, reinterpret_cast<ggml_bf16_t*>(out), n);
    default:
      return ggml_get_type_traits(ggml_type_of(type))->from_float_ref(from, out, n);
  }
}

void decode(ElementType type, const std::byte* from, float* out, std::int64_t n) {
  switch (type) {
    case ElementType::f16:
      prepare_conversions();
      return ggml_cpu_fp16_to_fp32(reinterpret_cast<const ggml_fp16_t*>(from), out, n);
    case ElementType::bf16:
      return ggml_cpu_bf16_to_fp32(reinterpret_cast<const ggml_bf16_t*>(from), out, n);
    default:
      return ggml_get_type_traits(ggml_type_of(type))->to_float(from, out, n);
  }
}

}  // namespace

std::size_t row_bytes(ElementType type, int dim) {
  return ggml_row_size(ggml_type_of(type), static_cast<std::int64_t>(padded(type, dim)));
}

void encode_row(ElementType type, std::span<const float> row, std::byte* out) {
  if (type == ElementType::f32) {
    std::memcpy(out, row.data(), row.size_bytes());
    return;
  }
  const auto n = padded(type, static_cast<int>(row.size()));
  if (n == row.size()) {
    encode(type, row.data(), out, static_cast<std::int64_t>(n));
    return;
  }
  std::vector<float> whole(n, 0.0F);
  std::copy(row.begin(), row.end(), whole.begin());
  encode(type, whole.data(), out, static_cast<std::int64_t>(n));
}

void decode_row(ElementType type, const std::byte* row, std::span<float> out) {
  if (type == ElementType::f32) {
    std::memcpy(out.data(), row, out.size_bytes());
    return;
  }
  const auto n = padded(type, static_cast<int>(out.size()));
  if (n == out.size()) {
    decode(type, row, out.data(), static_cast<std::int64_t>(n));
    return;
  }
  std::vector<float> whole(n);
  decode(type, row, whole.data(), static_cast<std::int64_t>(n));
  std::copy_n(whole.begin(), out.size(), out.begin());
}

}  // namespace winnow::cache
