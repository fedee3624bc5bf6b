// SPDX-License-Identifier: Apache-2.0
#include "prompt.h"

#include <algorithm>
#include <cmath>

namespace winnow::device::test {

std::string PromptShape::name() const {
  return "dim " + std::to_string(dim) + ", rows " + std::to_string(first) + " + " + std::to_string(count) + ", heads " +
         std::to_string(heads) + "/" + std::to_string(kv_heads) + ", window " + std::to_string(window) + ", cap " +
         std::to_string(cap) + (sinks ? ", sinks" : "") + (element == Element::f16 ? ", f16" : ", bf16");
}

Prompt::Prompt(const PromptShape& shape) : Prompt(shape, std::mt19937(1)) {}

Prompt::Prompt(const PromptShape& shape, std::mt19937 random)
    : out(z(shape.count) * z(shape.heads) * z(shape.dim)),
      lse(z(shape.count) * z(shape.heads)),
      packed(z(shape.count) * z(shape.heads) * z(shape.dim)),
      shape_(shape),
      q_(normal(random, z(shape.count) * z(shape.heads) * z(shape.dim))),
      sinks_(normal(random, z(shape.heads))),
      keys_(encoded(shape.element, normal(random, z(shape.kv_heads) * z(capacity()) * z(shape.dim)))),
      values_(encoded(shape.element, normal(random, keys_.bits.size()))),
      device_q_(q_),
      device_sinks_(sinks_),
      device_keys_(keys_.bits),
      device_values_(values_.bits) {}

PrefillTask Prompt::task() const {
  return {.q = device_q_.address(),
          .out = out.address(),
          .lse = lse.address(),
          .packed = packed.address(),
          .keys = device_keys_.address(),
          .values = device_values_.address(),
          .sinks = shape_.sinks ? device_sinks_.address() : nullptr,
          .element = shape_.element,
          .first = shape_.first,
          .count = shape_.count,
          .heads = shape_.heads,
          .kv_heads = shape_.kv_heads,
          .dim = shape_.dim,
          .capacity = capacity(),
          .window = shape_.window,
          .scale = 1 / std::sqrt(static_cast<float>(shape_.dim)),
          .cap = shape_.cap};
}

int Prompt::first_key(int i) const { return shape_.window > 0 ? std::max(0, shape_.first + i + 1 - shape_.window) : 0; }

reference::Result Prompt::attend(int i, int head) const {
  const int kv_head = head / (shape_.heads / shape_.kv_heads);
  const int end = shape_.first + i + 1;
  const auto q = rows_of(q_, i * shape_.heads + head, 1, shape_.dim, 0, 1);
  return reference::attend(q, rows_of(keys_.values, kv_head, capacity(), shape_.dim, first_key(i), end),
                           rows_of(values_.values, kv_head, capacity(), shape_.dim, first_key(i), end),
                           {.scale = 1 / std::sqrt(static_cast<double>(shape_.dim)),
                            .cap = shape_.cap,
                            .sink = shape_.sinks ? sinks_[z(head)] : reference::kNone},
                           rounding_of(shape_.element));
}

}  // namespace winnow::device::test
