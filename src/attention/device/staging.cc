// SPDX-License-Identifier: Apache-2.0
#include "attention/device/staging.h"

namespace winnow::attention::device {

std::size_t Staging::add(std::size_t bytes) {
  const std::size_t at = bytes_.size();
  bytes_.resize(at + winnow::device::aligned(bytes));
  return at;
}

void Staging::reserve() { memory_.grow(device_, bytes_.size(), "a step's queries and positions"); }

}  // namespace winnow::attention::device
