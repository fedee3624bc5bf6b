// SPDX-License-Identifier: Apache-2.0
#include "attention/device/work_space.h"

namespace winnow::attention::device {

std::size_t WorkSpace::add(std::size_t bytes) {
  const std::size_t at = bytes_;
  bytes_ += winnow::device::aligned(bytes);
  return at;
}

void WorkSpace::reserve() { memory_.grow(device_, bytes_, "attention's work space"); }

}  // namespace winnow::attention::device
