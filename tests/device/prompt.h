// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "memory.h"
#include "rows.h"

namespace winnow::device::test {

/// A chunk of a prompt in a layer.
struct PromptShape {
  int dim = 64;
  int first = 0;
  int count = 0;
  int heads = 1;
  int kv_heads = 1;
  int window = 0;
  float cap = 0;
  bool sinks = false;
  Element element = Element::bf16;
  std::vector<int> past = {};  ///< rows of each KV head before the prompt; empty: none

  std::string name() const;
};

/// A chunk's tensors, on the device and on the host, and each query's result by the slow reference.
class Prompt {
 public:
  explicit Prompt(const PromptShape& shape);

  const PromptShape& shape() const { return shape_; }
  /// The prefill's task, with results in out, lse and packed.
  PrefillTask task() const;
  /// The result of the chunk's query i.
  reference::Result attend(int i, int head) const;
  /// The first row of the scratch that query i sees; past_keys() is the number of rows before the prompt that it sees.
  int first_key(int i) const;
  int past_keys(int i, int head) const;
  int capacity() const { return shape_.first + shape_.count + 3; }

  Array<float> out;
  Array<float> lse;
  Array<std::uint16_t> packed;
  const Array<std::uint16_t>& keys() const { return device_keys_; }

 private:
  Prompt(const PromptShape& shape, std::mt19937 random);
  /// The keys or values that a query sees.
  std::vector<float> seen(int i, int head, const Encoded& past, const Encoded& rows) const;

  PromptShape shape_;
  std::vector<float> q_;
  std::vector<float> sinks_;
  Encoded keys_;
  Encoded values_;
  Array<float> device_q_;
  Array<float> device_sinks_;
  Array<std::uint16_t> device_keys_;
  Array<std::uint16_t> device_values_;
  std::vector<std::int32_t> past_first_;
  Encoded past_keys_;
  Encoded past_values_;
  Array<std::int32_t> device_past_first_;
  Array<std::uint16_t> device_past_keys_;
  Array<std::uint16_t> device_past_values_;
};

}  // namespace winnow::device::test
