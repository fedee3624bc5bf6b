// SPDX-License-Identifier: Apache-2.0
#include "cli/counts.h"

#include <spdlog/fmt/fmt.h>

#include <charconv>
#include <limits>
#include <system_error>

namespace winnow::cli {

namespace {

/// The error for a text that is not a `what` within the range, or "". CLI11's checks do not distinguish the two cases,
/// and print the largest double with all its digits.
template <class T>
std::string wrong(const std::string& text, const char* what, T least, T most) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::invalid_argument || end != text.data() + text.size())
    return fmt::format("{} is not a {}", text, what);
  if (error == std::errc() && least <= value && value <= most) return "";
  if (most < std::numeric_limits<int>::max()) return fmt::format("{} is not from {} to {}", text, least, most);
  const bool is_below = error == std::errc() ? value < least : text.starts_with('-');
  return is_below ? fmt::format("{} is less than {}", text, least) : fmt::format("{} is more than {}", text, most);
}

}  // namespace

CLI::Validator counts_from(int least) {
  return {[least](const std::string& text) {
            return wrong<int>(text, "whole number", least, std::numeric_limits<int>::max());
          },
          ""};
}

CLI::Validator whole_number(int least, int most) {
  return {[least, most](const std::string& text) { return wrong(text, "whole number", least, most); },
          fmt::format("{}-{}", least, most)};
}

CLI::Validator number(double least, double most) {
  return {[least, most](const std::string& text) { return wrong(text, "number", least, most); },
          fmt::format("{}-{}", least, most)};
}

}  // namespace winnow::cli
