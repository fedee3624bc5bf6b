// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace winnow::server {

/// Digits that a number between bounds may have before its point.
constexpr int kMostDigits = 15;
constexpr std::int64_t kLargest = 999'999'999'999'999;

/// Both ends belong to a range unless they are open.
struct NumberRange {
  std::int64_t least = -kLargest;
  std::int64_t most = kLargest;
  bool is_open_below = false;
  bool is_open_above = false;
};

/// GBNF of the whole numbers of a range, and of all numbers of it; empty: there are none. REQUIRES: bounds within
/// kLargest.
std::string whole_numbers(const NumberRange& range);
std::string decimal_numbers(const NumberRange& range);

}  // namespace winnow::server
