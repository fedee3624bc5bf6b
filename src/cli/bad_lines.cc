// SPDX-License-Identifier: Apache-2.0
#include "cli/bad_lines.h"

#include <spdlog/fmt/fmt.h>

#include "base/log.h"

namespace winnow::cli {

namespace {

constexpr int kMostNamed = 5;

}  // namespace

void BadLines::add(const std::string& sentence) {
  if (++count_ <= kMostNamed) log().error("{}", sentence);
}

std::string BadLines::named() const {
  return count_ <= kMostNamed ? "" : fmt::format(" (the first {} are named above)", kMostNamed);
}

}  // namespace winnow::cli
