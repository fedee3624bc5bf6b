// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/kernels.h"

namespace winnow::attention::device {

/// Runs in a device's memory, of rows with `dim` elements. `most`: entries of the longest run.
struct RunsOfRows {
  const winnow::device::StoredRun* runs;
  std::size_t count;
  int most, dim;
};

/// The task that encodes rows, without rotation and checks.
inline winnow::device::StoreTask store_task(const RunsOfRows& rows, winnow::device::Element source,
                                            winnow::device::Element element) {
  return {.runs = rows.runs,
          .angles = {},
          .bad = nullptr,
          .source = source,
          .element = element,
          .run_count = static_cast<std::int32_t>(rows.count),
          .most = rows.most,
          .dim = rows.dim};
}

}  // namespace winnow::attention::device
