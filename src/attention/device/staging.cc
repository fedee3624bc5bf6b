// SPDX-License-Identifier: Apache-2.0
#include "attention/device/staging.h"

namespace winnow::attention::device {

std::size_t Staging::add(std::size_t bytes) {
  constexpr std::size_t kLine = 256;
  const std::size_t at = bytes_.size();
  bytes_.resize(at + (bytes + kLine - 1) / kLine * kLine);
  return at;
}

void Staging::reserve() {
  if (memory_.size() >= bytes_.size()) return;
  memory_ = {};  // frees the old one first
  memory_ = winnow::device::DeviceMemory(device_, bytes_.size() + bytes_.size() / 2, "a step's queries and positions");
}

}  // namespace winnow::attention::device
