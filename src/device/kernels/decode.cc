// SPDX-License-Identifier: Apache-2.0
#include "device/kernels/calls.h"
#include "device/kernels/decode_block.h"
#include "device/kernels/merge.h"

namespace winnow::device {
namespace {

/// Elements per load of quantized rows of D.
template <int D>
inline constexpr int kScaledWidth = D >= 128 ? 16 : 8;

/// Readers of an element's rows: as stored, and one octet at a time.
struct F32 {
  template <int D>
  using Rows = SingleRows;
  using Octets = SingleRows;
};
template <class T>
struct Plain {
  template <int D>
  using Rows = PlainRows<T>;
  using Octets = PlainRows<T>;
};
struct Q8 {
  template <int D>
  using Rows = Q8Rows<kScaledWidth<D>>;
  using Octets = Q8Rows<8>;
};
struct Q4 {
  template <int D>
  using Rows = Q4Rows<kScaledWidth<D>>;
  using Octets = Q4Rows<8>;
};

template <class K, class V, int D>
WINNOW_KERNEL(kDecodeWarps * 32)
decode_rows(const DecodeTask task) {
  using Keys = typename K::template Rows<D>;
  using Values = typename V::template Rows<D>;
  DecodeBlock<StoredKeys<Keys, D, 2>, StoredValues<Values, D, 1>, RowEntries, D, 1>(task, task.items[block_x()]).run();
}

template <class K, class V, int D>
WINNOW_KERNEL(kDecodeWarps * 32)
decode_listed(const DecodeTask task) {
  DecodeBlock<TurnedKeys<typename K::Octets, D, 2>, StoredValues<typename V::template Rows<D>, D, 1>, ListedEntries, D,
              1>(task, task.items[block_x()])
      .run();
}

template <class K, class V>
const char* decode_items(const DecodeTask& task, void* stream) {
  return for_dim(task.dim, [&]<int D>() {
    const int head_blocks = (task.heads / task.kv_heads + kDecodeHeads - 1) / kDecodeHeads;
    const Grid grid{task.item_count, head_blocks, kDecodeWarps * 32, DecodeShape<D>::bytes(task.listed != 0)};
    return task.listed != 0 ? launch<decode_listed<K, V, D>>(grid, stream, task)
                            : launch<decode_rows<K, V, D>>(grid, stream, task);
  });
}

/// Dispatches on the supported pairs of key and value elements.
const char* decode_any(const DecodeTask& task, void* stream) {
  const auto are = [&](Element keys, Element values) {
    return task.key_element == keys && task.value_element == values;
  };
  if (are(Element::f32, Element::f32)) return decode_items<F32, F32>(task, stream);
  if (are(Element::f16, Element::f16)) return decode_items<Plain<F16>, Plain<F16>>(task, stream);
  if (are(Element::bf16, Element::bf16)) return decode_items<Plain<Bf16>, Plain<Bf16>>(task, stream);
  if (are(Element::q8_0, Element::q8_0)) return decode_items<Q8, Q8>(task, stream);
  if (are(Element::q8_0, Element::f16)) return decode_items<Q8, Plain<F16>>(task, stream);
  if (are(Element::q8_0, Element::q4_0)) return decode_items<Q8, Q4>(task, stream);
  if (are(Element::q4_0, Element::q4_0)) return decode_items<Q4, Q4>(task, stream);
  return "lanes on a device have f32, f16, bf16, q8_0 or q4_0 for keys and values, or q8_0 with f16 or q4_0";
}

}  // namespace

const char* decode(const DecodeTask& task, void* stream) {
  if (task.listed != 0 && task.angles.fine == nullptr) return "entries with positions need angles";
  const char* problem = problem_of(task.angles, task.dim);
  if (problem == nullptr) problem = decode_any(task, stream);
  return problem != nullptr ? problem : merge(task, stream);
}

}  // namespace winnow::device
