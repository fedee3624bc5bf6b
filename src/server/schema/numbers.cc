// SPDX-License-Identifier: Apache-2.0
#include "server/schema/numbers.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace winnow::server {

namespace {

using Alternatives = std::vector<std::string>;

constexpr const char* kAnyFraction = R"(("." [0-9]{1,16})?)";
constexpr const char* kNoFraction = R"(("." "0"{1,16})?)";
constexpr const char* kSomeFraction = R"("." "0"{0,15} [1-9] [0-9]{0,15})";

std::string group(const Alternatives& all) { return all.empty() ? "" : fmt::format("({})", fmt::join(all, " | ")); }

std::string class_of(char first, char last) { return fmt::format("[{}-{}]", first, last); }

std::string any_digits(std::size_t count) { return fmt::format("[0-9]{{{}}}", count); }

/// Digits that are not below those of `least`, and not above those of `most`. REQUIRES: as many of each.
std::string digits_between(std::string_view least, std::string_view most) {
  const bool is_every = least.find_first_not_of('0') == least.npos && most.find_first_not_of('9') == most.npos;
  if (is_every) return least.empty() ? "" : any_digits(least.size());
  const char a = least.front();
  const char b = most.front();
  const auto rest_least = least.substr(1);
  const auto rest_most = most.substr(1);
  if (a == b) return fmt::format("\"{}\" {}", a, digits_between(rest_least, rest_most));
  const std::string nines(rest_least.size(), '9');
  const std::string zeros(rest_least.size(), '0');
  Alternatives out{fmt::format("\"{}\" {}", a, digits_between(rest_least, nines))};
  if (b - a > 1) {
    const std::string first = class_of(static_cast<char>(a + 1), static_cast<char>(b - 1));
    out.push_back(fmt::format("{} {}", first, digits_between(zeros, nines)));
  }
  out.push_back(fmt::format("\"{}\" {}", b, digits_between(zeros, rest_most)));
  return group(out);
}

/// Those from `least` to `most`, none of them negative, by their lengths; empty: there are none.
std::string naturals(std::int64_t least, std::int64_t most) {
  Alternatives out;
  std::int64_t first = least;
  while (first <= most) {
    const std::string digits = std::to_string(first);
    const std::int64_t longest = std::stoll(std::string(digits.size(), '9'));
    out.push_back(digits_between(digits, std::to_string(std::min(longest, most))));
    first = longest + 1;
  }
  return group(out);
}

/// Decimals of a range without negative numbers.
Alternatives positive_decimals(const NumberRange& range) {
  Alternatives out;
  if (range.least > range.most) return out;
  if (range.least == range.most) {
    if (!range.is_open_below && !range.is_open_above) out.push_back(fmt::format("\"{}\" {}", range.most, kNoFraction));
    return out;
  }
  out.push_back(fmt::format("\"{}\" {}", range.least, range.is_open_below ? kSomeFraction : kAnyFraction));
  const std::string between = naturals(range.least + 1, range.most - 1);
  if (!between.empty()) out.push_back(between + " " + kAnyFraction);
  if (!range.is_open_above) out.push_back(fmt::format("\"{}\" {}", range.most, kNoFraction));
  return out;
}

void add_negative(Alternatives& to, const std::string& numbers) {
  if (!numbers.empty()) to.push_back("\"-\" " + numbers);
}

}  // namespace

std::string whole_numbers(const NumberRange& range) {
  const std::int64_t least = range.least + (range.is_open_below ? 1 : 0);
  const std::int64_t most = range.most - (range.is_open_above ? 1 : 0);
  Alternatives out;
  if (least < 0) add_negative(out, naturals(std::max<std::int64_t>(1, -most), -least));
  if (const auto natural = naturals(std::max<std::int64_t>(0, least), most); !natural.empty()) out.push_back(natural);
  return group(out);
}

std::string decimal_numbers(const NumberRange& range) {
  Alternatives out;
  const bool has_zero_above = range.most >= 0;
  if (range.least < 0) {
    const NumberRange mirrored{has_zero_above ? 0 : -range.most, -range.least, has_zero_above || range.is_open_above,
                               range.is_open_below};
    add_negative(out, group(positive_decimals(mirrored)));
  }
  if (has_zero_above) {
    const NumberRange rest{std::max<std::int64_t>(0, range.least), range.most, range.least >= 0 && range.is_open_below,
                           range.is_open_above};
    for (auto& one : positive_decimals(rest)) out.push_back(std::move(one));
  }
  return group(out);
}

}  // namespace winnow::server
