// SPDX-License-Identifier: Apache-2.0
#include "attention/device/angle_table.h"

#include <span>

namespace winnow::attention::device {

winnow::device::Angles AngleTable::up_to(std::int32_t end, winnow::device::Device& device) {
  const auto copy = [&device](std::span<const float> from) {
    winnow::device::DeviceMemory out(device, from.size_bytes(), "the table of rotations");
    out.write(0, std::as_bytes(from));
    return out;
  };
  table_.reserve(end);
  if (fine_.size() == 0) fine_ = copy(table_.fine());
  if (copied_ < table_.end()) coarse_ = copy(table_.coarse());
  copied_ = table_.end();
  return {.coarse = reinterpret_cast<const float*>(coarse_.at(0)),
          .fine = reinterpret_cast<const float*>(fine_.at(0)),
          .pairs = table_.pairs(),
          .width = table_.width(),
          .halves = table_.pairing() == Rope::Pairing::halves ? 1 : 0};
}

}  // namespace winnow::attention::device
