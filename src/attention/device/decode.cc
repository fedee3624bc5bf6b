// SPDX-License-Identifier: Apache-2.0
#include "attention/device/decode.h"

#include <algorithm>

#include "base/as_size.h"
#include "winnow/error.h"

namespace winnow::attention::device {

void Decode::begin(const Shape& shape, const Rope& rope, std::span<const DecodeRead> reads, const float* q, float* out,
                   int rows) {
  out_ = out;
  is_on_cpu_ = !context_.gate.is_open() || !LayerStep::supports(shape, rope, reads);
  if (!is_on_cpu_) {
    try {
      is_on_cpu_ = !queue(shape, rope, reads, q, rows);
    } catch (const MemoryError& error) {
      layer_.forget();
      context_.gate.tell(error.what());
      is_on_cpu_ = true;
    }
  }
  if (is_on_cpu_) cpu_->begin(shape, rope, reads, q, out, rows);
}

bool Decode::queue(const Shape& shape, const Rope& rope, std::span<const DecodeRead> reads, const float* q, int rows) {
  auto& [staging, work] = arrays_;
  elements_ = as_size(rows) * as_size(shape.query_heads) * as_size(shape.head_dim);
  arrays_.clear();
  const auto staged = staging.add(std::span(q, elements_));
  const auto out = work.add(elements_ * sizeof(float));
  layer_.plan(shape, rope, reads, rows);
  const auto partial = work.add(layer_.partial_bytes());
  on_host_.resize(layer_.end_of_probabilities() / sizeof(float));
  arrays_.reserve();
  layer_.address();
  staging.upload();
  if (layer_.store() && layer_.decode(staging.at<float>(staged), work.at<float>(out), work.at<float>(partial)))
    return true;
  context_.copied->free_all();
  return false;
}

void Decode::run(Worker worker) {
  if (is_on_cpu_) return cpu_->run(worker);
  if (worker.index != 0) return;
  arrays_.work.read(0, std::span(on_host_));
  std::copy_n(on_host_.data(), elements_, out_);
  layer_.deliver(on_host_.data());
}

void Decode::merge(Worker worker) {
  if (is_on_cpu_) cpu_->merge(worker);
}

/// The CPU's, which may have to compute the step, and the arrays that are copied: queries and outputs, positions,
/// changed entries and probabilities.
std::size_t Decode::bytes(const Shape& shape, int rows, const LaneSize& lane, const Rope* rope, int end) const {
  const auto lanes = as_size(rows) * as_size(shape.kv_heads);
  const auto group = as_size(shape.group());
  const auto entries = as_size(lane.block) + as_size(lane.others);
  const auto vectors = lanes * (2 * group + 2) * as_size(shape.head_dim) * sizeof(float);
  const auto positions = rope == nullptr ? 0 : lanes * entries * sizeof(std::int32_t);
  const auto angles = rope == nullptr ? 0 : RotationTable::bytes(*rope, end);
  const auto copied = vectors + positions + lanes * group * entries * sizeof(float);
  return cpu_->bytes(shape, rows, lane, rope, end) + angles + copied;
}

}  // namespace winnow::attention::device
