// SPDX-License-Identifier: Apache-2.0
// The grammars of ranges against std::regex: a text is in a range when its number is.
#include "server/schema/numbers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <regex>
#include <string>

namespace winnow::server {
namespace {

/// A regular expression with the meaning of GBNF without names: spaces say nothing, and texts are in quotes.
std::regex regex_of(const std::string& gbnf) {
  std::string out;
  bool is_quoted = false;
  for (const char c : gbnf) {
    if (c == '"') is_quoted = !is_quoted;
    if (c == '"' || c == ' ') continue;
    if (is_quoted && c == '.') out += '\\';
    out += c;
  }
  return std::regex(gbnf.empty() ? "(?!)" : out);
}

bool contains(const NumberRange& range, double value) {
  const auto least = static_cast<double>(range.least);
  const auto most = static_cast<double>(range.most);
  return (range.is_open_below ? value > least : value >= least) && (range.is_open_above ? value < most : value <= most);
}

NumberRange random_range(std::mt19937& random) {
  const auto below = [&random](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
  const int scale = below(2) == 0 ? 20 : 3000;
  NumberRange out;
  if (below(5) > 0) out.least = below(2 * scale) - scale;
  if (below(5) > 0) out.most = (out.least == -kLargest ? -scale : out.least) + below(scale);
  out.is_open_below = below(2) == 0;
  out.is_open_above = below(2) == 0;
  return out;
}

TEST(Numbers, a_whole_number_is_in_its_range) {
  std::mt19937 random(1);
  for (int i = 0; i < 60; ++i) {
    const NumberRange range = random_range(random);
    const std::regex grammar = regex_of(whole_numbers(range));
    for (int value = -3200; value <= 6200; value += i % 7 + 1)
      EXPECT_EQ(std::regex_match(std::to_string(value), grammar), contains(range, value)) << value << " " << i;
    for (const std::string wrong : {"", "-", "007", "1.0", "+1", "--1"}) EXPECT_FALSE(std::regex_match(wrong, grammar));
  }
}

TEST(Numbers, a_decimal_number_is_in_its_range) {
  std::mt19937 random(2);
  for (int i = 0; i < 60; ++i) {
    const NumberRange range = random_range(random);
    const std::regex grammar = regex_of(decimal_numbers(range));
    for (int hundredths = -310000; hundredths <= 610000; hundredths += 37 * (i % 5) + 225) {
      if (hundredths > -100 && hundredths < 0) continue;  // std::to_string() has no -0
      const std::string fraction = std::to_string(std::abs(hundredths) % 100 + 100).substr(1);
      const std::string text = std::to_string(hundredths / 100) + "." + fraction;
      EXPECT_EQ(std::regex_match(text, grammar), contains(range, hundredths / 100.0)) << text << " " << i;
    }
    for (const std::string wrong : {"", "-", "00.5", "1.", ".5", "1e5"}) EXPECT_FALSE(std::regex_match(wrong, grammar));
  }
}

TEST(Numbers, between_two_neighbours_there_are_only_fractions) {
  const NumberRange range{0, 1, true, true};
  const std::regex grammar = regex_of(decimal_numbers(range));
  EXPECT_TRUE(whole_numbers(range).empty());
  for (const std::string right : {"0.5", "0.01", "0.999"}) EXPECT_TRUE(std::regex_match(right, grammar)) << right;
  for (const std::string wrong : {"0", "0.0", "1", "1.0", "-0.5"})
    EXPECT_FALSE(std::regex_match(wrong, grammar)) << wrong;
}

TEST(Numbers, the_largest_range_has_short_rules) {
  EXPECT_LT(whole_numbers({}).size(), 2000);
  EXPECT_LT(decimal_numbers({-123456789012345, 123456789012345, true, false}).size(), 6000);
}

}  // namespace
}  // namespace winnow::server
