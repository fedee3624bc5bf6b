// SPDX-License-Identifier: Apache-2.0
#include "base/format.h"

#include <spdlog/fmt/fmt.h>

#include <array>

namespace winnow {

std::string format_bytes(std::size_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string format_at_least(std::size_t bytes) {
  return fmt::format("{}KiB", bytes / 1024 + (bytes % 1024 > 0 ? 1 : 0));
}

}  // namespace winnow
