// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "eval/metrics/metric.h"
#include "eval/metrics/words.h"

namespace winnow::eval {

namespace {

bool has_choice(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Runs of digits.
std::vector<std::string_view> numbers_of(std::string_view text) {
  std::vector<std::string_view> out;
  for (auto begin = std::find_if(text.begin(), text.end(), is_digit); begin != text.end();) {
    const auto end = std::find_if_not(begin, text.end(), is_digit);
    out.emplace_back(begin, end);
    begin = std::find_if(end, text.end(), is_digit);
  }
  return out;
}

double share_of(std::string_view right, std::string_view answer) {
  const auto numbers = numbers_of(answer);
  if (numbers.empty()) return 0;
  return static_cast<double>(std::count(numbers.begin(), numbers.end(), right)) / static_cast<double>(numbers.size());
}

}  // namespace

double classification(std::string_view answer, std::string_view right, std::span<const std::string> classes) {
  std::vector<std::string_view> named;
  for (const auto& name : classes) {
    if (has_choice(answer, name)) named.push_back(name);
  }
  // The official script erases from the list while it iterates, and so skips the element after each erased one.
  for (std::size_t i = 0; i < named.size(); ++i) {
    if (has_choice(right, named[i]) && named[i] != right) named.erase(named.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return std::count(named.begin(), named.end(), right) > 0 ? 1.0 / static_cast<double>(named.size()) : 0;
}

double retrieval(std::string_view answer, std::string_view reference) {
  for (const std::string_view word : {"Paragraph ", "段落"}) {
    for (auto at = reference.find(word); at != std::string_view::npos; at = reference.find(word, at + 1)) {
      const auto after = reference.substr(at + word.size());
      if (!after.empty() && is_digit(after.front())) return share_of(numbers_of(after).front(), answer);
    }
  }
  return 0;
}

double count(std::string_view answer, std::string_view reference) { return share_of(reference, answer); }

std::vector<double> paragraphs_of(std::string_view answer) {
  std::vector<double> out;
  for (const auto digits : numbers_of(answer)) out.push_back(std::strtod(std::string(digits).c_str(), nullptr));
  return out;
}

Misplaced misplaced(std::span<const double> named, std::span<const double> right) {
  Misplaced out;
  for (const double number : named) {
    const auto is_earlier = [&](double other) { return number < other; };
    const auto is_later = [&](double other) { return number > other; };
    if (right.empty()) continue;
    if (std::all_of(right.begin(), right.end(), is_earlier)) out.earlier += 1.0 / static_cast<double>(named.size());
    if (std::all_of(right.begin(), right.end(), is_later)) out.later += 1.0 / static_cast<double>(named.size());
  }
  return out;
}

double last_number(std::string_view answer, std::string_view reference) {
  const auto without_zeros = [](std::string_view digits) {
    return digits.substr(std::min(digits.find_first_not_of('0'), digits.size()));
  };
  const auto numbers = numbers_of(answer);
  return !numbers.empty() && without_zeros(numbers.back()) == without_zeros(reference) ? 1 : 0;
}

double string_match(std::string_view answer, std::string_view reference) {
  return lower_case(unicode_of(answer)).indexOf(lower_case(unicode_of(reference))) >= 0 ? 1 : 0;
}

}  // namespace winnow::eval
