// SPDX-License-Identifier: Apache-2.0
#include "winnow/policy/options.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include "base/printable.h"
#include "winnow/error.h"

namespace winnow::policy {

namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

template <class T>
bool read(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

/// Parses text that check() has accepted, independently of the locale.
template <class T>
T read_checked(const std::string& text) {
  T value = 0;
  if (!read(text, value)) throw std::logic_error("the option's value '" + text + "' is not a number");
  return value;
}

}  // namespace

std::string Option::default_text() const {
  return std::visit([](const auto& option) { return fmt::format("{}", option.value); }, kind);
}

std::string Option::range_text() const {
  return std::visit(
      Overloaded{[](const Choice& c) { return fmt::format("{}", fmt::join(c.all, "|")); },
                 [](const WordOrInteger& n) { return fmt::format("{} or {} to {}", n.word, n.least, n.most); },
                 [](const auto& n) { return fmt::format("{} to {}", n.least, n.most); }},
      kind);
}

std::string Option::check(std::string_view owner, std::string_view text) const {
  const auto refuse = [&] {
    return UsageError(fmt::format("{}: {}={} is not possible: give {}", owner, name, brief(text), range_text()));
  };
  const auto whole = [&](int least, int most) {
    int value = 0;
    if (!read(text, value) || value < least || value > most) throw refuse();
    return fmt::format("{}", value);
  };
  return std::visit(Overloaded{[&](const Integer& n) { return whole(n.least, n.most); },
                               [&](const WordOrInteger& n) { return text == n.word ? n.word : whole(n.least, n.most); },
                               [&](const Number& n) {
                                 double value = 0;
                                 if (!read(text, value) || !(value >= n.least && value <= n.most)) throw refuse();
                                 return fmt::format("{}", value == 0 ? 0.0 : value);  // avoids -0
                               },
                               [&](const Choice& c) {
                                 if (std::find(c.all.begin(), c.all.end(), text) == c.all.end()) throw refuse();
                                 return std::string(text);
                               }},
                    kind);
}

Options::Options(const std::vector<Option>& declared) {
  for (const auto& option : declared) values_[option.name] = option.default_text();
}

int Options::integer(const std::string& name) const { return read_checked<int>(text(name)); }
std::optional<int> Options::integer_if(const std::string& name) const {
  int value = 0;
  return read(text(name), value) ? std::optional(value) : std::nullopt;
}
double Options::number(const std::string& name) const { return read_checked<double>(text(name)); }

}  // namespace winnow::policy
