// SPDX-License-Identifier: Apache-2.0
#include "attention/device/step_context.h"

#include <algorithm>

namespace winnow::attention::device {

winnow::device::Angles StepContext::angles(const Rope& rope, std::int32_t end) {
  const auto is_its = [&](const auto& table) { return &table->rope() == &rope; };
  auto found = std::ranges::find_if(angles_, is_its);
  if (found == angles_.end()) found = angles_.insert(angles_.end(), std::make_unique<AngleTable>(account_, rope));
  return (*found)->up_to(end, device);
}

}  // namespace winnow::attention::device
