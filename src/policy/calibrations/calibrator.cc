// SPDX-License-Identifier: Apache-2.0
#include "winnow/policy/calibrator.h"

#include <spdlog/fmt/fmt.h>

#include "winnow/error.h"

namespace winnow::policy {

void Calibrator::see_scores(const Scores& /*scores*/) {}
std::optional<double> Calibrator::explained() const { return {}; }

std::span<const float> LayerCalibration::numbers(std::string_view name, std::size_t count) const {
  const auto found = facts_.find(name);
  if (found == facts_.end())
    throw UsageError(fmt::format("the calibration has no {}: make a new one with winnow calibrate", name));
  if (found->second.size() != count) {
    throw UsageError(fmt::format(
        "the calibration's {} have {} numbers for a layer, expected {}: make a new one with winnow calibrate", name,
        found->second.size(), count));
  }
  return found->second;
}

}  // namespace winnow::policy
