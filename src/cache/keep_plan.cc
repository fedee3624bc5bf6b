// SPDX-License-Identifier: Apache-2.0
#include "cache/keep_plan.h"

#include <type_traits>

namespace winnow::cache {

namespace {

/// Bytes of a vector's elements, recursively.
template <class T>
std::size_t bytes_of(const std::vector<T>& vector) {
  std::size_t out = vector.capacity() * sizeof(T);
  if constexpr (!std::is_trivially_copyable_v<T>) {
    for (const auto& element : vector) out += bytes_of(element);
  }
  return out;
}

}  // namespace

std::size_t KeepPlan::bytes() const {
  return bytes_of(heads) + bytes_of(values) + bytes_of(keys) + bytes_of(merged_entries) + bytes_of(state);
}

}  // namespace winnow::cache
