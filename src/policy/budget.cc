// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/printable.h"
#include "winnow/error.h"
#include "winnow/spec.h"

namespace winnow {

namespace {

struct Suffix {
  std::string_view text;
  Budget::Unit unit;
  double factor;
};

/// From the largest to the smallest.
constexpr Suffix kSuffixes[] = {{"GiB", Budget::Unit::bytes, 1024.0 * 1024 * 1024},
                                {"MiB", Budget::Unit::bytes, 1024.0 * 1024},
                                {"KiB", Budget::Unit::bytes, 1024.0},
                                {"%", Budget::Unit::percent, 1}};

constexpr double kMostAmount = 1e15;  // entries or bytes; far above any memory, exact in a double

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
  throw UsageError(fmt::format("the budget '{}' {}: give entries per KV head (512), a share (10%) or bytes (64MiB)",
                               brief(text), why));
}

bool is_word(std::string_view text) {
  const auto is_letter = [](char c) { return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z'); };
  return !text.empty() && std::all_of(text.begin(), text.end(), is_letter);
}

}  // namespace

Budget Budget::parse(std::string_view text) {
  Budget budget;
  double factor = 1;
  std::string_view digits = text;
  for (const auto& suffix : kSuffixes) {
    if (!text.ends_with(suffix.text)) continue;
    digits.remove_suffix(suffix.text.size());
    budget.unit_ = suffix.unit;
    factor = suffix.factor;
  }
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const auto rest = digits.substr(static_cast<std::size_t>(end - digits.data()));
  if (error == std::errc() && budget.unit_ == Unit::entries && is_word(rest))
    refuse(text, fmt::format("has the unit '{}', expected %, KiB, MiB or GiB", brief(rest)));
  if (error != std::errc() || !rest.empty() || !std::isfinite(value)) refuse(text, "is not a number");
  if (value <= 0) refuse(text, "is not above 0");
  if (budget.unit_ == Unit::percent && value > 100) refuse(text, "is over 100 %");
  if (budget.unit_ == Unit::entries && value != std::floor(value)) refuse(text, "is not a whole number of entries");
  budget.amount_ = value * factor;
  if (budget.amount_ > kMostAmount) refuse(text, "is too large");
  return budget;
}

std::string Budget::print() const {
  switch (unit_) {
    case Unit::entries:
      return fmt::format("{:.0f}", amount_);
    case Unit::percent:
      return fmt::format("{}%", amount_);
    case Unit::bytes:
      break;
  }
  // Prints in the largest unit of which the amount is a whole multiple, so that it is printed as it was typed.
  for (const Suffix& suffix : kSuffixes) {
    const double value = amount_ / suffix.factor;
    if (suffix.unit == Unit::bytes && value == std::floor(value)) return fmt::format("{:.0f}{}", value, suffix.text);
  }
  return fmt::format("{}KiB", amount_ / 1024);
}

int Budget::entries(int tokens, std::size_t entry_bytes, std::size_t besides) const {
  const auto whole = [](double x) {
    return static_cast<int>(std::min(std::floor(x), static_cast<double>(std::numeric_limits<int>::max())));
  };
  switch (unit_) {
    case Unit::entries:
      return whole(amount_);
    case Unit::percent:
      // A share like 4.1 % has no exact double. The factor allows for its error and two roundings, so that a whole
      // result does not become one less.
      return whole(amount_ * tokens / 100 * (1 + 2 * std::numeric_limits<double>::epsilon()));
    case Unit::bytes:
      return whole(std::max(0.0, amount_ - static_cast<double>(besides)) / static_cast<double>(entry_bytes));
  }
  return 0;
}

}  // namespace winnow
