// SPDX-License-Identifier: Apache-2.0
// Queues every kernel at the sizes of a large model's longest prompts, for the recorder: nothing reads the addresses.
#include <cstdio>
#include <initializer_list>

#include "device/kernels.h"

namespace winnow::device {
namespace {

constexpr std::int32_t kContext = 131'072;
constexpr std::int32_t kChunk = 4096;
constexpr std::int32_t kHeads = 32;
constexpr std::int32_t kKvHeads = 8;
constexpr std::int32_t kRows = 64;

template <class T>
T* address() {
  return reinterpret_cast<T*>(std::uintptr_t{1} << 20U);
}

void expect(const char* problem, const char* what, std::int32_t dim) {
  if (problem != nullptr) std::printf("%s with heads of %d: %s\n", what, static_cast<int>(dim), problem);
}

void read_prompt(const Kernels& kernels, std::int32_t dim, Element element) {
  PrefillTask task{};
  task.q = task.sinks = address<float>();
  task.out = task.lse = address<float>();
  task.packed = address<void>();
  task.keys = task.values = task.past_keys = task.past_values = address<void>();
  task.past_first = address<std::int32_t>();
  task.element = element;
  task.first = kContext - kChunk;
  task.count = kChunk;
  task.heads = kHeads;
  task.kv_heads = kKvHeads;
  task.dim = dim;
  task.capacity = kContext;
  task.scale = 1;
  expect(kernels.prefill(task, nullptr), "prefill", dim);
  ObserveTask observed{};
  observed.packed = observed.keys = address<void>();
  observed.lse = address<float>();
  observed.rows = address<std::int32_t>();
  observed.columns = address<float>();
  observed.element = element;
  observed.observed = observed.count = kChunk;
  observed.first = task.first;
  observed.heads = kHeads;
  observed.kv_heads = kKvHeads;
  observed.dim = dim;
  observed.capacity = observed.end = observed.stride = kContext;
  expect(kernels.observe(observed, nullptr), "observe", dim);
  ProductsTask products{};
  products.rows = address<void>();
  products.out = address<double>();
  products.element = element;
  products.count = kContext;
  products.dim = dim;
  expect(kernels.products(products, nullptr), "products", dim);
}

Angles angles_of(std::int32_t dim) { return {address<float>(), address<float>(), dim / 2, dim / 2, 1}; }

void step(const Kernels& kernels, std::int32_t dim, Element keys, Element values, std::int32_t listed) {
  DecodeTask task{};
  task.q = address<float>();
  task.out = task.lse = task.partial = address<float>();
  task.items = address<DecodeItem>();
  task.first_item = address<std::int32_t>();
  task.angles = angles_of(dim);
  task.listed = listed;
  task.key_element = keys;
  task.value_element = values;
  task.item_count = kRows * kKvHeads * (kContext / 256);
  task.rows = kRows;
  task.heads = kHeads;
  task.kv_heads = kKvHeads;
  task.dim = dim;
  task.scale = 1;
  expect(kernels.decode(task, nullptr), "decode", dim);
}

void store(const Kernels& kernels, std::int32_t dim, Element from, Element to) {
  StoreTask task{};
  task.runs = address<StoredRun>();
  task.angles = angles_of(dim);
  task.source = from;
  task.element = to;
  task.run_count = 2 * kRows * kKvHeads;
  task.most = kContext;
  task.dim = dim;
  expect(kernels.store(task, nullptr), "store", dim);
}

void launch_all(const Kernels& kernels) {
  for (const std::int32_t dim : {64, 80, 128, 256}) {
    for (const auto element : {Element::f16, Element::bf16}) read_prompt(kernels, dim, element);
    for (const std::int32_t listed : {0, 1}) {
      for (const auto element : {Element::f32, Element::f16, Element::bf16, Element::q8_0, Element::q4_0})
        step(kernels, dim, element, element, listed);
      step(kernels, dim, Element::q8_0, Element::q4_0, listed);
      step(kernels, dim, Element::q8_0, Element::f16, listed);
    }
    for (const auto to : {Element::f16, Element::bf16, Element::q8_0, Element::q4_0}) {
      store(kernels, dim, Element::f32, to);
      store(kernels, dim, to, to);
    }
  }
}

}  // namespace
}  // namespace winnow::device

int main() { winnow::device::launch_all(*winnow_kernels()); }
