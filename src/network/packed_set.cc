// SPDX-License-Identifier: Apache-2.0
#include "network/packed_set.h"

#include <ggml.h>

#include <algorithm>
#include <cstring>

#include "base/as_size.h"
#include "network/bf16_rows.h"

namespace winnow::network {

namespace {

constexpr std::int64_t kSegment = 1024;  // inputs dequantized and packed together: a multiple of all types' blocks

std::size_t bytes_of(const ggml_tensor& matrix) {
  return as_size(padded_inputs(matrix.ne[0]) * padded_outputs(matrix.ne[1])) * sizeof(std::uint16_t);
}

constexpr std::ptrdiff_t kStride =
    kSegment + 32;  // of rounded rows: not a power of two, since 64 rows are read side by side

/// Work space of a segment: one row in f32, 64 in bf16.
constexpr std::size_t kRowsBytes = kSegment * sizeof(float) + kBlockOutputs * kStride * sizeof(std::uint16_t);

}  // namespace

std::size_t packing_bytes(int threads) { return kRowsBytes * as_size(threads); }

std::size_t PackedSet::bytes(std::span<const ggml_tensor* const> matrices) {
  std::size_t sum = 0;
  for (const auto* const m : matrices) sum += bytes_of(*m);
  return sum;
}

PackedSet::PackedSet(const model::Weights& weights, MemoryAccount& account, std::size_t bytes, int threads)
    : weights_(weights),
      data_(account, bytes, "packed weights"),
      rows_(account, packing_bytes(threads), "rows of weights that are being packed") {}

void PackedSet::begin(std::span<const ggml_tensor* const> matrices) {
  matrices_.clear();
  items_.clear();
  auto* data = data_.as<std::uint16_t>().data();
  for (const auto* const m : matrices) {
    const auto& matrix = matrices_[m] = {weights_.in_file(m), m, data};
    for (int first = 0; first < m->ne[1]; first += kBlockOutputs) items_.push_back({&matrix, first});
    data += bytes_of(*m) / sizeof(std::uint16_t);
  }
  queue_.reset(static_cast<int>(items_.size()));
}

void PackedSet::pack(Worker worker) noexcept {
  std::byte* const rows = rows_.data() + as_size(worker.index) * kRowsBytes;
  for (int i = queue_.take(); i >= 0; i = queue_.take()) pack(items_[i], rows);
}

void PackedSet::pack(const WorkItem& item, std::byte* rows) const {
  const ggml_tensor& weight = *item.matrix->weight;
  const auto to_float = ggml_get_type_traits(weight.type)->to_float;
  auto* const floats = reinterpret_cast<float*>(rows);
  auto* const rounded = reinterpret_cast<std::uint16_t*>(floats + kSegment);
  for (std::int64_t first = 0; first < weight.ne[0]; first += kSegment) {
    const std::int64_t inputs = std::min(kSegment, weight.ne[0] - first);
    const std::ptrdiff_t padded = padded_inputs(inputs);
    for (int i = 0; i < kBlockOutputs; ++i) {
      const int output = item.first + i;
      if (output >= weight.ne[1]) {
        std::memset(rounded + i * kStride, 0, as_size(padded) * sizeof(std::uint16_t));
        continue;
      }
      const std::byte* const from = item.matrix->source + as_size(output) * ggml_row_size(weight.type, weight.ne[0]) +
                                    ggml_row_size(weight.type, first);
      if (to_float != nullptr) to_float(from, floats, inputs);
      round_row(to_float == nullptr ? reinterpret_cast<const float*>(from) : floats, inputs, padded,
                rounded + i * kStride);
    }
    pack_rows(rounded, kStride, padded,
              item.matrix->data + item.first * padded_inputs(weight.ne[0]) + first * kBlockOutputs);
  }
}

const PackedMatrix* PackedSet::find(const ggml_tensor* weight) const {
  const auto found = matrices_.find(weight);
  return found == matrices_.end() ? nullptr : &found->second;
}

}  // namespace winnow::network
