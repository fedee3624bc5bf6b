// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "base/as_size.h"
#include "winnow/policy/attention.h"

namespace winnow::attention {

bool ObservedRows::contains(int i, int n) const {
  switch (kind) {
    case Kind::last:
      return i >= n - count;
    case Kind::all:
    case Kind::band:
      return true;
    case Kind::listed:
      return std::binary_search(list.begin(), list.end(), i);
  }
  return false;
}

Observation::Observation(Observe what, int query_heads, int n)
    : what_(std::move(what)), query_heads_(query_heads), n_(n), values_(as_size(query_heads) * as_size(n)) {}

}  // namespace winnow::attention
