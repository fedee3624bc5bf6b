// SPDX-License-Identifier: Apache-2.0
#include "prompt.h"

#include <algorithm>
#include <cmath>

namespace winnow::device::test {
namespace {

std::vector<std::int32_t> first_rows(const std::vector<int>& counts) {
  std::vector<std::int32_t> out{0};
  for (const int n : counts) out.push_back(out.back() + n);
  return out;
}

}  // namespace

std::string PromptShape::name() const {
  return "dim " + std::to_string(dim) + ", rows " + std::to_string(first) + " + " + std::to_string(count) + ", heads " +
         std::to_string(heads) + "/" + std::to_string(kv_heads) + ", window " + std::to_string(window) + ", cap " +
         std::to_string(cap) + (sinks ? ", sinks" : "") + (past.empty() ? "" : ", past") +
         (element == Element::f16 ? ", f16" : ", bf16");
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
      device_values_(values_.bits),
      past_first_(first_rows(shape.past)),
      past_keys_(encoded(shape.element, normal(random, z(past_first_.back()) * z(shape.dim)))),
      past_values_(encoded(shape.element, normal(random, past_keys_.bits.size()))),
      device_past_first_(past_first_),
      device_past_keys_(past_keys_.bits),
      device_past_values_(past_values_.bits) {}

PrefillTask Prompt::task() const {
  return {.q = device_q_.address(),
          .out = out.address(),
          .lse = lse.address(),
          .packed = packed.address(),
          .keys = device_keys_.address(),
          .values = device_values_.address(),
          .sinks = shape_.sinks ? device_sinks_.address() : nullptr,
          .past_keys = device_past_keys_.address(),
          .past_values = device_past_values_.address(),
          .past_first = shape_.past.empty() ? nullptr : device_past_first_.address(),
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

int Prompt::past_keys(int i, int head) const {
  if (shape_.past.empty()) return 0;
  const int all = shape_.past[z(head / (shape_.heads / shape_.kv_heads))];
  return shape_.window > 0 ? std::clamp(shape_.window - (shape_.first + i + 1), 0, all) : all;
}

std::vector<float> Prompt::seen(int i, int head, const Encoded& past, const Encoded& rows) const {
  const int kv_head = head / (shape_.heads / shape_.kv_heads);
  std::vector<float> all;
  if (!shape_.past.empty()) {
    const int end = past_first_[z(kv_head) + 1];
    all = rows_of(past.values, 0, end, shape_.dim, end - past_keys(i, head), end);
  }
  const auto own = rows_of(rows.values, kv_head, capacity(), shape_.dim, first_key(i), shape_.first + i + 1);
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

reference::Result Prompt::attend(int i, int head) const {
  const auto q = rows_of(q_, i * shape_.heads + head, 1, shape_.dim, 0, 1);
  return reference::attend(q, seen(i, head, past_keys_, keys_), seen(i, head, past_values_, values_),
                           {.scale = 1 / std::sqrt(static_cast<double>(shape_.dim)),
                            .cap = shape_.cap,
                            .sink = shape_.sinks ? sinks_[z(head)] : reference::kNone},
                           rounding_of(shape_.element));
}

}  // namespace winnow::device::test
