// SPDX-License-Identifier: Apache-2.0
#include "engine/output_projection.h"

#include "base/as_size.h"
#include "cache/element.h"
#include "cache/scratch.h"

namespace winnow::engine {

void OutputProjection::lengths(int layer, const cache::LayerScratch& scratch, policy::OutputLengths& out) const {
  const auto dim = as_size(scratch.head_dim());
  const auto values = [&](int head, int first, int count, float* to) {
    const auto rows = scratch.values(head);
    for (int i = 0; i < count; ++i)
      cache::decode_row(rows.type, rows.row(first + i),
                        {to + static_cast<std::ptrdiff_t>(i) * scratch.head_dim(), dim});
  };
  executor_.output_lengths(layer, scratch.size(), values, {out.absolute.all(), out.euclidean.all()});
}

}  // namespace winnow::engine
