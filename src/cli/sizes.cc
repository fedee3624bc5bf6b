// SPDX-License-Identifier: Apache-2.0
#include "cli/sizes.h"

#include <spdlog/fmt/fmt.h>

#include "winnow/error.h"
#include "winnow/spec.h"

namespace winnow::cli {

std::size_t size_of(const char* option, const std::string& text) {
  try {
    const Budget budget = Budget::parse(text);
    if (budget.unit() != Budget::Unit::percent) return static_cast<std::size_t>(budget.amount());
  } catch (const UsageError&) {
    if (text == "0") return 0;
  }
  throw UsageError(fmt::format("{} {} is not a size: give 0, bytes, KiB, MiB or GiB, such as 500MiB", option, text));
}

}  // namespace winnow::cli
