// SPDX-License-Identifier: Apache-2.0
#include "attention/device/work_space.h"

namespace winnow::attention::device {

std::size_t WorkSpace::add(std::size_t bytes) {
  const std::size_t at = bytes_;
  bytes_ += winnow::device::aligned(bytes);
  return at;
}

void WorkSpace::reserve() {
  if (memory_.size() >= bytes_) return;
  memory_ = {};  // frees the old one first
  memory_ = winnow::device::DeviceMemory(device_, bytes_ + bytes_ / 4, "attention's work space");
}

}  // namespace winnow::attention::device
