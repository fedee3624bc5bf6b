// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "cache/element.h"
#include "device/kernels.h"

namespace winnow::attention::device {

/// Layout of encoded rows for kernels: their elements, and in another plane the scales of quantized ones (see
/// device::Element).
class RowPlanes {
 public:
  RowPlanes(ElementType type, int dim);

  winnow::device::Element element() const { return static_cast<winnow::device::Element>(type_); }
  /// Bytes of a row's elements, and of its scales.
  std::size_t elements() const { return elements_; }
  std::size_t scales() const { return scales_; }

  /// Splits `count` rows as a lane stores them.
  void split(const std::byte* rows, int count, std::byte* elements, std::byte* scales) const;

 private:
  ElementType type_;
  std::size_t row_;  ///< bytes of a row in a lane
  std::size_t elements_;
  std::size_t scales_;
};

}  // namespace winnow::attention::device
