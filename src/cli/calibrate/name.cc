// SPDX-License-Identifier: Apache-2.0
#include "cli/calibrate/name.h"

#include <spdlog/fmt/fmt.h>

#include <vector>

#include "base/file.h"
#include "base/hash.h"

namespace winnow::cli {

std::string calibration_name(const SessionOptions& options) {
  if (options.calibration.empty()) return "";
  const FileSource file(options.calibration);
  std::vector<std::byte> bytes(file.size());
  file.read(0, bytes);
  return fmt::format("{:016x}", hash_of(bytes));
}

}  // namespace winnow::cli
